import type { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { Chunk } from '../run/chunk.ts'
import type { ModelSettings } from '../run/options.ts'
import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import type { HookCall } from './hook-call.ts'
import type { PartOfRun } from './part-of-run.ts'
import type {
  ProcessAPIErrorArgs, ProcessInputArgs, ProcessInputStepArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, ProcessorContext,
  ProcessToolResultArgs,
} from './processor.ts'
import type { Seat } from './seat.ts'
import type { StepChange } from './step-change.ts'

/*
 * What hooks are given. Every processor gets an object of its own at every place, so that what one of these costs is what a processor costs:
 * each is made in one piece, with fields that are known beforehand and written once.
 */

/** What every hook is given. */
export class HookContext implements ProcessorContext {
  declare agent: ProcessorContext['agent']
  declare runId: string
  declare threadId?: string
  declare resourceId?: string
  declare requestContext: ProcessorContext['requestContext']
  declare abortSignal: AbortSignal
  declare logger: ProcessorContext['logger']
  declare state: Record<string, unknown>
  declare retryCount: number
  declare abort: ProcessorContext['abort']
  declare sendSignal: ProcessorContext['sendSignal']

  constructor(run: Run, { state }: Seat, call: HookCall) {
    this.agent = run.agent
    this.runId = run.id
    if (run.threadId !== undefined) this.threadId = run.threadId
    if (run.resourceId !== undefined) this.resourceId = run.resourceId
    this.requestContext = run.requestContext
    this.abortSignal = call.closing?.signal ?? run.signal
    this.logger = run.logger
    this.state = state
    this.retryCount = run.retries
    this.abort = call.abort
    this.sendSignal = call.sendSignal
  }
}

export class InputArgs extends HookContext implements ProcessInputArgs {
  declare messages: ProcessInputArgs['messages']
  declare messageList: ProcessInputArgs['messageList']
  declare systemMessages: ProcessInputArgs['systemMessages']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.systemMessages = run.system
  }
}

export class InputStepArgs extends HookContext implements ProcessInputStepArgs {
  declare messages: ProcessInputStepArgs['messages']
  declare messageList: ProcessInputStepArgs['messageList']
  declare systemMessages: ProcessInputStepArgs['systemMessages']
  declare stepNumber: number
  declare steps: ProcessInputStepArgs['steps']
  declare model: ProcessInputStepArgs['model']
  declare tools: ProcessInputStepArgs['tools']
  declare toolChoice: ProcessInputStepArgs['toolChoice']
  declare activeTools: ProcessInputStepArgs['activeTools']
  declare modelSettings: ProcessInputStepArgs['modelSettings']
  declare providerOptions: ProcessInputStepArgs['providerOptions']

  /** `change`: what the processors before it have changed. */
  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, change: StepChange, model: ProcessInputStepArgs['model'], settings: ModelSettings) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.systemMessages = change.systemMessages ?? run.system
    this.stepNumber = run.step
    this.steps = run.steps
    this.model = change.model ?? model
    this.tools = run.tools.definitions
    this.toolChoice = change.toolChoice
    this.activeTools = change.activeTools ?? run.options.activeTools
    this.modelSettings = change.modelSettings ?? settings
    this.providerOptions = change.providerOptions ?? run.options.providerOptions
  }
}

export class OutputStreamArgs extends HookContext implements ProcessOutputStreamArgs {
  declare part: Chunk
  declare streamParts: readonly Chunk[]
  declare emit: ProcessOutputStreamArgs['emit']

  constructor(run: Run, seat: Seat, call: HookCall, part: Chunk, streamParts: readonly Chunk[], emit: ProcessOutputStreamArgs['emit']) {
    super(run, seat, call)
    this.part = part
    this.streamParts = streamParts
    this.emit = emit
  }
}

export class OutputStepArgs extends HookContext implements ProcessOutputStepArgs {
  declare messages: ProcessOutputStepArgs['messages']
  declare messageList: ProcessOutputStepArgs['messageList']
  declare stepNumber: number
  declare steps: ProcessOutputStepArgs['steps']
  declare text: string
  declare toolCalls: ProcessOutputStepArgs['toolCalls']
  declare finishReason: ProcessOutputStepArgs['finishReason']
  declare usage: ProcessOutputStepArgs['usage']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, said: StepRecorder, toolCalls: ProcessOutputStepArgs['toolCalls']) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.stepNumber = run.step
    this.steps = run.steps
    this.text = said.text
    this.toolCalls = toolCalls
    this.finishReason = said.finishReason
    this.usage = said.usage
  }
}

export class ToolResultArgs extends HookContext implements ProcessToolResultArgs {
  declare stepNumber: number
  declare toolName: string
  declare toolCallId: string
  declare args: JSONValue
  declare result: JSONValue
  declare isError: boolean
  declare preliminary: boolean

  constructor(run: Run, seat: Seat, call: HookCall, { toolName, toolCallId, args }: ToolInvocation, result: JSONValue, isError: boolean, preliminary: boolean) {
    super(run, seat, call)
    this.stepNumber = run.step
    this.toolName = toolName
    this.toolCallId = toolCallId
    this.args = args
    this.result = result
    this.isError = isError
    this.preliminary = preliminary
  }
}

export class OutputResultArgs extends HookContext implements ProcessOutputResultArgs {
  declare messages: ProcessOutputResultArgs['messages']
  declare messageList: ProcessOutputResultArgs['messageList']
  declare result: ProcessOutputResultArgs['result']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, result: ProcessOutputResultArgs['result']) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.result = result
  }
}

export class APIErrorArgs extends HookContext implements ProcessAPIErrorArgs {
  declare error: HeedError
  declare stepNumber: number
  declare messages: ProcessAPIErrorArgs['messages']
  declare messageList: ProcessAPIErrorArgs['messageList']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, error: HeedError) {
    super(run, seat, call)
    this.error = error
    this.stepNumber = run.step
    this.messages = part.messages
    this.messageList = part.list
  }
}
