import type { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { Chunk } from '../run/chunk.ts'
import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import type { HookCall } from './hook-call.ts'
import type { PartOfRun } from './part-of-run.ts'
import type {
  ProcessAPIErrorArgs, ProcessInputArgs, ProcessInputStepArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, Processor,
  ProcessorContext, ProcessToolResultArgs,
} from './processor.ts'
import type { StepChange } from './step-change.ts'

/*
 * What hooks are given. Every processor gets an object of its own at every place, so that what one of these costs is what a processor costs:
 * each is made in one piece, with fields that are known beforehand.
 */

/** A processor in one run. */
export interface Seat {
  readonly processor: Processor
  readonly state: Record<string, unknown>
}

/** What every hook is given. */
export class HookContext implements ProcessorContext {
  agent: ProcessorContext['agent']
  runId: string
  declare threadId?: string
  declare resourceId?: string
  requestContext: ProcessorContext['requestContext']
  abortSignal: AbortSignal
  logger: ProcessorContext['logger']
  state: Record<string, unknown>
  retryCount: number
  abort: ProcessorContext['abort']
  sendSignal: ProcessorContext['sendSignal']

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
  messages: ProcessInputArgs['messages']
  messageList: ProcessInputArgs['messageList']
  systemMessages: ProcessInputArgs['systemMessages']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.systemMessages = run.system
  }
}

export class InputStepArgs extends HookContext implements ProcessInputStepArgs {
  messages: ProcessInputStepArgs['messages']
  messageList: ProcessInputStepArgs['messageList']
  systemMessages: ProcessInputStepArgs['systemMessages']
  stepNumber: number
  steps: ProcessInputStepArgs['steps']
  model: ProcessInputStepArgs['model']
  tools: ProcessInputStepArgs['tools']
  toolChoice: ProcessInputStepArgs['toolChoice']
  activeTools: ProcessInputStepArgs['activeTools']
  modelSettings: ProcessInputStepArgs['modelSettings']
  providerOptions: ProcessInputStepArgs['providerOptions']

  /** `change`: what the processors before it have changed. */
  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, change: StepChange, model: ProcessInputStepArgs['model']) {
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
    this.modelSettings = change.modelSettings ?? run.options.modelSettings ?? {}
    this.providerOptions = change.providerOptions ?? run.options.providerOptions
  }
}

export class OutputStreamArgs extends HookContext implements ProcessOutputStreamArgs {
  part: Chunk
  streamParts: readonly Chunk[]
  emit: ProcessOutputStreamArgs['emit']

  constructor(run: Run, seat: Seat, call: HookCall, part: Chunk, streamParts: readonly Chunk[], emit: ProcessOutputStreamArgs['emit']) {
    super(run, seat, call)
    this.part = part
    this.streamParts = streamParts
    this.emit = emit
  }
}

export class OutputStepArgs extends HookContext implements ProcessOutputStepArgs {
  messages: ProcessOutputStepArgs['messages']
  messageList: ProcessOutputStepArgs['messageList']
  stepNumber: number
  steps: ProcessOutputStepArgs['steps']
  text: string
  toolCalls: ProcessOutputStepArgs['toolCalls']
  finishReason: ProcessOutputStepArgs['finishReason']
  usage: ProcessOutputStepArgs['usage']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, said: StepRecorder) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.stepNumber = run.step
    this.steps = run.steps
    this.text = said.text
    this.toolCalls = said.calls.map(({ part: { toolInvocation } }) => toolInvocation)
    this.finishReason = said.finishReason
    this.usage = said.usage
  }
}

export class ToolResultArgs extends HookContext implements ProcessToolResultArgs {
  stepNumber: number
  toolName: string
  toolCallId: string
  args: JSONValue
  result: JSONValue
  isError: boolean
  preliminary: boolean

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
  messages: ProcessOutputResultArgs['messages']
  messageList: ProcessOutputResultArgs['messageList']
  result: ProcessOutputResultArgs['result']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, result: ProcessOutputResultArgs['result']) {
    super(run, seat, call)
    this.messages = part.messages
    this.messageList = part.list
    this.result = result
  }
}

export class APIErrorArgs extends HookContext implements ProcessAPIErrorArgs {
  error: HeedError
  stepNumber: number
  messages: ProcessAPIErrorArgs['messages']
  messageList: ProcessAPIErrorArgs['messageList']

  constructor(run: Run, seat: Seat, call: HookCall, part: PartOfRun, error: HeedError) {
    super(run, seat, call)
    this.error = error
    this.stepNumber = run.step
    this.messages = part.messages
    this.messageList = part.list
  }
}
