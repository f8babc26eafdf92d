import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { isPromise } from '../base/promises.ts'
import { copyPlain, isSamePlain, type JSONValue } from '../base/json.ts'
import { processorMessages } from '../message/processor-view.ts'
import type { ProviderOptions, ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import type { Chunk } from '../message/chunk.ts'
import type { SystemMessage } from '../prompt/system.ts'
import type { Run } from '../run/loop/run.ts'
import type { ModelSettings } from '../run/model/model.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { copyChunk, emittedChunk, publishedChunk, returnedChunk } from './chunk-results.ts'
import { FailedInput } from './failed-input.ts'
import {
  apiErrorArgs, contextFor, inputArgs, inputStepArgs, outputResultArgs, outputStepArgs, outputStreamArgs, toolResultArgs,
} from './hook-args.ts'
import { allBound, bindProcessors, whenResolved, type BoundProcessors, type HookCall } from './hook-call.ts'
import { HookMessages, revisedStep, RunMessages } from './hook-messages.ts'
import { checkJSON, readChange, readObject, readStepChange, readSystemMessages, type StepChange } from './hook-results.ts'
import { withoutInlineFiles } from './inline-files.ts'
import { processorLabel, type Hook, type HookOf } from './hooks.ts'
import type { InputSource, ProcessInputStepArgs, Processor, ProcessOutputResultArgs } from './processor.ts'
import { computeState } from './state-signals.ts'
import { TripwireAbort } from './tripwire.ts'

const maxStreamParts = 1_000
const noLanes: ReadonlySet<string> = new Set()

type Lists = readonly [input: readonly Processor[], output: readonly Processor[]]
const noProcessors: Lists = [[], []]

/** A promise only where a hook returned one: most hooks return at once. */
type MaybePromise<T> = T | Promise<T>

export interface InputKind {
  /** The run doesn't have these rows. */
  outside?: boolean
  /** The rows of the calls that follow at once. */
  next?: readonly MessageRow[]
}

interface ResultKind {
  isError?: boolean
  preliminary?: boolean
}

/**
 * The processors of one run, called at each point of the loop that has hooks. Without processors, a point costs a comparison; hooks that
 * return at once are called one after the other without a promise between them.
 */
export class ProcessorPipeline {
  /** A processor may reject: the output of the run is provisional until its end. */
  declare readonly canReject: boolean
  /** A processor has `processInput`. */
  declare readonly readsInput: boolean
  /** A processor may reject the input before a model reads it. */
  declare readonly guardsInput: boolean
  declare readonly watchesStream: boolean
  declare readonly handlesErrors: boolean
  /** A processor has `processToolResult`. */
  declare readonly checksToolResults: boolean
  /** A processor has `processOutputResult`. */
  declare readonly checksOutput: boolean
  /** The lanes of the processors of this run. */
  declare readonly lanes: ReadonlySet<string>
  declare private readonly changesSteps: boolean
  declare private readonly checksSteps: boolean
  /** How many processors see the stream: what one of several returned may be changed in place by the next. */
  declare private readonly streamHooks: number
  declare private readonly lists: Lists
  declare private readonly maxRetries: number
  /** Created with the first call of a hook. */
  declare private boundProcessors: BoundProcessors | undefined
  declare private streamed: Chunk[] | undefined
  declare private messages: RunMessages | undefined
  /** The input as the processors left it that have finished `processInput`, while another one runs. */
  declare private leftInput: MessageRow[] | undefined

  /** Inspects every processor for every run: a list and its processors may change between two runs. */
  constructor(input: readonly Processor[], output: readonly Processor[], maxRetries: number) {
    let readsInput = false, changesSteps = false, streamHooks = 0, checksSteps = false
    let checksToolResults = false, checksOutput = false, handlesErrors = false
    let lanes: Set<string> | undefined
    for (let index = 0; index < input.length; index++) {
      const processor = input[index] as Processor
      readsInput ||= processor.processInput !== undefined
      changesSteps ||= processor.processInputStep !== undefined
      handlesErrors ||= processor.processAPIError !== undefined
      if (processor.computeStateSignal !== undefined) (lanes ??= new Set()).add(processor.stateId ?? processor.id)
    }
    for (let index = 0; index < output.length; index++) {
      const processor = output[index] as Processor
      if (processor.processOutputStream !== undefined) streamHooks++
      checksSteps ||= processor.processOutputStep !== undefined
      checksToolResults ||= processor.processToolResult !== undefined
      checksOutput ||= processor.processOutputResult !== undefined
      handlesErrors ||= processor.processAPIError !== undefined
    }
    const watchesStream = streamHooks > 0
    const guardsInput = readsInput || changesSteps || lanes !== undefined
    const canReject = guardsInput || watchesStream || checksSteps || checksToolResults || checksOutput || handlesErrors
    this.canReject = canReject
    this.readsInput = readsInput
    this.guardsInput = guardsInput
    this.watchesStream = watchesStream
    this.handlesErrors = handlesErrors
    this.checksToolResults = checksToolResults
    this.checksOutput = checksOutput
    this.lanes = lanes ?? noLanes
    this.changesSteps = changesSteps || lanes !== undefined
    this.checksSteps = checksSteps
    this.streamHooks = streamHooks
    this.lists = canReject ? [input.slice(), output.slice()] : noProcessors
    this.maxRetries = maxRetries
    this.boundProcessors = undefined
    this.streamed = undefined
    this.messages = undefined
    this.leftInput = undefined
  }

  private bound(run: Run): BoundProcessors {
    return (this.boundProcessors ??= bindProcessors(run, this.lists[0], this.lists[1]))
  }

  private get streamParts(): Chunk[] {
    return (this.streamed ??= [])
  }

  private get runMessages(): RunMessages {
    return (this.messages ??= new RunMessages())
  }

  /** The input after `processInput`; undefined when it is unchanged. */
  input(run: Run, rows: readonly MessageRow[], kind: InputKind = {}): MaybePromise<MessageRow[] | undefined> {
    if (!this.readsInput) return undefined
    const part = inputPart(run, rows, kind)
    const { called, system } = this.callInputHooks(run, part, 'input')
    const end = () => afterHooks(this.bound(run).input, 'processInput', () => changedInput(run, part, system()))
    return called ? called.then(end) : end()
  }

  /**
   * Texts that are no input of the run, after `processInput`: in the same order, as one message with a part for each. Throws where a
   * processor rejects them. Instructions and messages that a processor adds are ignored.
   */
  async texts(run: Run, texts: readonly string[], source: 'context' | 'stored'): Promise<readonly string[]> {
    if (!this.readsInput || texts.length === 0) return texts
    const id = run.newId()
    const row = run.row('user', id, id, texts.map((text) => ({ type: 'text', text })))
    // Before the first step, the hooks are called for the input of the run after this.
    const part = inputPart(run, [row], { outside: true, ...(run.step === 0 && { next: run.history.input }) })
    const { called } = this.callInputHooks(run, part, source)
    if (called) await called
    return afterHooks(this.bound(run).input, 'processInput', () => textsLeft(part.changed, row, texts))
  }

  private callInputHooks(
    run: Run, part: HookMessages, source: InputSource,
  ): { called: Promise<void> | undefined; system: () => SystemMessage[] } {
    let system = copyPlain(run.system)
    const apply = (returned: unknown) => {
      const change = readChange<{ messages?: unknown; systemMessages?: unknown }>(returned, ['messages', 'systemMessages'])
      if (change?.systemMessages !== undefined) system = readSystemMessages(change.systemMessages)
      part.apply(change ? change.messages : returned)
    }
    const { input } = this.bound(run)
    let calls = 0
    this.leftInput = undefined
    const called = inSequence(input, (bound) => {
      const { processInput } = bound.processor
      if (!processInput) return undefined
      if (calls++ > 0) this.leftInput = afterHooks(input, 'processInput', () => [...part.rows])
      const call = bound.next('processInput', part)
      return call.invoke(processInput, inputArgs(run, call, part, system, source), apply)
    })
    return { called, system: () => system }
  }

  /**
   * What history keeps of input with which a processor failed: what the processors before it left, without the bytes of files, which the
   * one that failed may have been to store elsewhere; or what a `FailedInput` names. Undefined where nothing changes.
   */
  failedInput(run: Run, rows: readonly MessageRow[], error: unknown, kind: InputKind = {}): MessageRow[] | undefined {
    if (!isHeedError(error) || (error.code !== 'processor_failed' && error.code !== 'processor_timeout')) return undefined
    const part = inputPart(run, rows, kind)
    if (error.cause instanceof FailedInput) part.apply([...error.cause.messages])
    else {
      if (this.leftInput && this.leftInput.length > 0) part.apply(processorMessages(this.leftInput))
      part.apply(part.messages.map(withoutInlineFiles))
    }
    return part.changed
  }

  /** The options of this step's model call that processors changed. Adds the states of their lanes. */
  inputStep(run: Run): MaybePromise<Omit<StepChange, 'messages' | 'messageList'>> {
    if (!this.changesSteps) return noChange
    const change: StepChange = {}
    const part = this.runMessages.all(run)
    const given = givenToStep(run)
    const model = firstModel(run)
    const apply = (returned: unknown, { activeTools }: ProcessInputStepArgs) => {
      const step = returned === undefined ? undefined : readStepChange(returned, run, activeTools)
      part.apply(step ? (step.messageList ?? step.messages) : returned)
      if (step) Object.assign(change, step)
    }
    const { input } = this.bound(run)
    const called = inSequence(input, (bound) => {
      const { processInputStep } = bound.processor
      if (!processInputStep) return undefined
      const call = bound.next('processInputStep')
      return call.invoke(processInputStep, inputStepArgs(run, call, part, change, given, model), apply)
    })
    const computed = called ? called.then(() => this.computeStates(run, part)) : this.computeStates(run, part)
    const end = () => afterHooks(input, 'processInputStep', () => changedStep(run, part, editedStep(run, given, change)))
    return computed ? computed.then(end) : end()
  }

  private computeStates(run: Run, part: HookMessages): Promise<void> | undefined {
    if (this.lanes.size === 0) return undefined
    return inSequence(this.bound(run).input, (bound) => {
      const { computeStateSignal } = bound.processor
      if (!computeStateSignal) return undefined
      const call = bound.next('computeStateSignal')
      return computeState(run, bound.processor, computeStateSignal, call, contextFor(run, call), part)
    })
  }

  /** The chunks to publish in place of a chunk, in order. The hooks get a copy, and what they change in place is published. */
  outputStream(run: Run, chunk: Chunk): Chunk[] | Promise<Chunk[]> {
    const copy = copyChunk(chunk)
    return whenResolved(this.throughFrom(run, [copy], 0), (passed) => {
      const { streamParts } = this
      for (const part of passed) streamParts.push(part)
      if (streamParts.length > maxStreamParts) streamParts.splice(0, maxStreamParts / 2)
      // Most chunks pass unchanged.
      if (passed.length === 1 && passed[0] === copy && isSamePlain(copy, chunk)) return [chunk]
      return afterHooks(this.bound(run).output, 'processOutputStream', () => {
        return passed.map((part) => (part === copy || this.streamHooks > 1 ? publishedChunk(part, copy, chunk) : part))
      })
    })
  }

  /** The chunks after the output processors from index `from` on. */
  private throughFrom(run: Run, chunks: Chunk[], from: number): Chunk[] | Promise<Chunk[]> {
    const { output } = this.bound(run)
    let passed = chunks
    for (let index = from; index < output.length; index++) {
      const bound = output[index] as HookCall
      const { processOutputStream } = bound.processor
      if (!processOutputStream) continue
      const result = this.through(run, bound, processOutputStream, passed, 0, [])
      if (isPromise(result)) return result.then((chunks) => this.throughFrom(run, chunks, index + 1))
      passed = result
    }
    return passed
  }

  /** The chunks after one processor. `passed` holds its results for the chunks before `from`. */
  private through(
    run: Run, bound: HookCall, hook: HookOf<'processOutputStream'>, chunks: readonly Chunk[], from: number, passed: Chunk[],
  ): Chunk[] | Promise<Chunk[]> {
    for (let index = from; index < chunks.length; index++) {
      const part = chunks[index] as Chunk
      const call = bound.next('processOutputStream')
      const emit = (chunk: Chunk) => void passed.push(emittedChunk(chunk, part))
      const called = call.invoke(hook, outputStreamArgs(run, call, part, this.streamParts, emit), (returned) => {
        const chunk = returnedChunk(returned, part)
        if (chunk) passed.push(chunk)
      })
      if (called) return called.then(() => this.through(run, bound, hook, chunks, index + 1, passed))
    }
    return passed
  }

  /** The row of a step after `processOutputStep`, or the reason to call the model again. */
  outputStep(
    run: Run, output: StepRecorder, row: MessageRow | undefined,
  ): MaybePromise<{ row: MessageRow | undefined } | { retry: string }> {
    if (!this.checksSteps) return { row }
    const part = this.runMessages.ofStep(run, row)
    const apply = (returned: unknown) => {
      if (part.apply(returned) && row && output.calls.length > 0) checkCalls(part, row)
    }
    const processors = this.bound(run).output
    const end = () => afterHooks(processors, 'processOutputStep', () => ({ row: changedRow(row, part, output) }))
    try {
      const called = inSequence(processors, (bound) => {
        const { processOutputStep } = bound.processor
        if (!processOutputStep) return undefined
        const call = bound.next('processOutputStep')
        return call.invoke(processOutputStep, outputStepArgs(run, call, part, output), apply)
      })
      if (!called) return end()
      return called.then(end, (error: unknown) => ({ retry: this.countRetry(run, error) }))
    } catch (error) {
      return { retry: this.countRetry(run, error) }
    }
  }

  /** A tool's result after `processToolResult`. `rejected`: the text that the model receives in its place. */
  async toolResult(
    run: Run, invocation: ToolInvocation, result: JSONValue, kind: ResultKind = {},
  ): Promise<{ result: JSONValue } | { rejected: string }> {
    const { toolName } = invocation
    const { isError = false, preliminary = false } = kind
    // The hooks share a copy, so that a result that one of them changed in place differs from the tool's.
    let current = copyPlain(result)
    const call = { ...invocation, args: copyPlain(invocation.args) }
    const apply = (returned: unknown) => {
      const change = readObject<{ result: JSONValue }>(returned, ['result'])
      if (change && 'result' in change) current = checkJSON(change.result, 'as the result')
      if (!isSamePlain(call.args, invocation.args)) throw new Error(`it changed args, but ${toolName} has run. Change the result.`)
    }
    try {
      await inSequence(this.bound(run).output, (bound) => {
        const { processToolResult } = bound.processor
        if (!processToolResult) return undefined
        const hookCall = bound.next('processToolResult')
        return hookCall.invoke(processToolResult, toolResultArgs(run, hookCall, call, current, isError, preliminary), apply)
      })
    } catch (error) {
      // A preliminary result is not published then, and the model never receives it.
      if (preliminary && error instanceof TripwireAbort && error.tripwire.retry) return { rejected: error.tripwire.reason }
      return { rejected: `The result of ${toolName} was not accepted: ${this.countRetry(run, error)}` }
    }
    if (isSamePlain(current, result)) return { result }
    return { result: afterHooks(this.bound(run).output, 'processToolResult', () => checkJSON(current, 'as the result')) }
  }

  /** The output of a segment after `processOutputResult`; undefined when it is unchanged. `uncommitted`: rows not in history yet. */
  outputResult(
    run: Run, segment: readonly MessageRow[], uncommitted: readonly MessageRow[], result: ProcessOutputResultArgs['result'],
  ): MaybePromise<MessageRow[] | undefined> {
    const part = new HookMessages(run, segment, 'segment', { uncommitted })
    // A change of the result alone would be lost: the messages are what is kept.
    Object.freeze(result)
    const apply = (returned: unknown) => void part.apply(returned)
    const { output } = this.bound(run)
    const called = inSequence(output, (bound) => {
      const { processOutputResult } = bound.processor
      if (!processOutputResult) return undefined
      const call = bound.next('processOutputResult')
      return call.invoke(processOutputResult, outputResultArgs(run, call, part, result), apply)
    })
    const end = () => afterHooks(output, 'processOutputResult', () => part.changed)
    return called ? called.then(end) : end()
  }

  /** True when a processor wants the model call to be retried. */
  async apiError(run: Run, error: HeedError): Promise<boolean> {
    const part = this.runMessages.all(run)
    let retry = false
    const apply = (returned: unknown) => {
      const { retry: requested = false } = readObject<{ retry: unknown }>(returned, ['retry']) ?? {}
      if (typeof requested !== 'boolean') throw new Error('it returned a retry that is not true or false.')
      retry = requested
      if (part.isArrayEdited || part.changed) {
        throw new Error('it changed messages, which processInputStep may change. Send a signal for the next call, or return { retry }.')
      }
    }
    await inSequence(allBound(this.bound(run)), (bound) => {
      const { processAPIError } = bound.processor
      if (!processAPIError || retry) return undefined
      const call = bound.next('processAPIError')
      return call.invoke(processAPIError, apiErrorArgs(run, call, part, error), apply)
    })
    return retry
  }

  /** Counts a rejection after which the model is called again, and returns its reason. Throws every other error. */
  private countRetry(run: Run, error: unknown): string {
    if (!(error instanceof TripwireAbort) || !error.tripwire.retry || run.retries >= this.maxRetries || run.atLimit) throw error
    run.retries++
    run.emit(run.chunk('tripwire', error.tripwire))
    return error.tripwire.reason
  }
}

/** Calls hooks one after the other. Returns a promise only from the first hook on that returned one. */
function inSequence(processors: readonly HookCall[], call: (bound: HookCall) => Promise<void> | undefined): Promise<void> | undefined {
  for (let index = 0; index < processors.length; index++) {
    const called = call(processors[index] as HookCall)
    if (called) return continueSequence(processors, call, index + 1, called)
  }
  return undefined
}

async function continueSequence(
  processors: readonly HookCall[], call: (bound: HookCall) => Promise<void> | undefined, from: number, before: Promise<void>,
): Promise<void> {
  await before
  for (let index = from; index < processors.length; index++) {
    const called = call(processors[index] as HookCall)
    if (called) await called
  }
}

function inputPart(run: Run, rows: readonly MessageRow[], { outside, next }: InputKind): HookMessages {
  return new HookMessages(run, rows, 'input', { ...(outside && { uncommitted: rows }), ...(next && { next }) })
}

/** The input after the hooks. Adds their instructions to those of the run. */
function changedInput(run: Run, part: HookMessages, system: SystemMessage[]): MessageRow[] | undefined {
  if (!isSamePlain(system, run.system)) run.system = copyPlain(readSystemMessages(system))
  if (part.list.hasSystem) {
    const added = part.list.systemMessages().filter(({ content }) => !run.system.some((known) => known.content === content))
    run.system = [...run.system, ...(added as typeof run.system)]
  }
  return part.changed
}

/** The texts that hooks left of a message with a part for each text. */
function textsLeft(changed: readonly MessageRow[] | undefined, { messageId }: MessageRow, texts: readonly string[]): readonly string[] {
  if (!changed) return texts
  const left = changed.find((row) => row.messageId === messageId)
  const parts = left?.content.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) ?? []
  if (parts.length === texts.length) return parts
  if (!left) throw new Error('it removed every message of the text that it was to check. Reject the text with abort() instead.')
  throw new Error(`it left ${parts.length} of ${texts.length} texts. Keep a part for each text, or reject them with abort().`)
}

/** The options of a step that hooks may change in place. */
function givenToStep({ system, options }: Run): StepChange {
  const given: StepChange = { systemMessages: copyPlain(system), modelSettings: copyPlain(options.modelSettings ?? {}) }
  if (options.providerOptions) given.providerOptions = copyPlain(options.providerOptions)
  if (options.activeTools) given.activeTools = options.activeTools.slice()
  return given
}

/** The changes of a step, with the options that hooks changed in place and did not return. */
function editedStep(run: Run, given: StepChange, change: StepChange): StepChange {
  const { modelSettings = {}, providerOptions, activeTools } = run.options
  const edited: StepChange = {}
  if (!isSamePlain(given.systemMessages, run.system)) edited.systemMessages = given.systemMessages as SystemMessage[]
  if (!isSamePlain(given.modelSettings, modelSettings)) edited.modelSettings = given.modelSettings as ModelSettings
  if (!isSamePlain(given.providerOptions, providerOptions)) edited.providerOptions = given.providerOptions as ProviderOptions
  if (!isSamePlain(given.activeTools, activeTools)) edited.activeTools = given.activeTools as string[]
  return Object.keys(edited).length === 0 ? change : { ...readStepChange(edited, run, edited.activeTools), ...change }
}

function changedStep(run: Run, part: HookMessages, change: StepChange): StepChange {
  const changed = part.changed
  if (changed) run.history.promptOnce(changed)
  if (!part.list.hasSystem) return change
  return { ...change, systemMessages: [...(change.systemMessages ?? run.system), ...(part.list.systemMessages() as typeof run.system)] }
}

/** Reads what the hooks of a point have left of their arguments. An error is that of one of the processors which have the hook. */
function afterHooks<T>(bound: readonly HookCall[], hook: Hook, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const processors = [...new Set(bound.map(({ processor }) => processor))].filter((processor) => processor[hook] !== undefined)
    const [first, ...others] = processors.map(processorLabel)
    const who = others.length === 0 ? `Processor ${first}` : `One of the processors ${[first, ...others].join(', ')}`
    const ids = others.length === 0 ? { processorId: processors[0]?.id } : { processorIds: processors.map(({ id }) => id) }
    throw new HeedError('processor_failed', `${who} failed in ${hook}: ${describe(error)}`, { cause: error, details: { ...ids, hook } })
  }
}

function changedRow(row: MessageRow | undefined, part: HookMessages, output: StepRecorder): MessageRow | undefined {
  part.settle()
  part.checkOthers()
  return row && part.isRead ? revisedStep(row, part.list, output) : row
}

/** A message with tool calls can't be removed by leaving it out: a processor that wants that rejects it. */
function checkCalls(part: HookMessages, { messageId }: MessageRow): void {
  if (part.messages.some(({ id }) => id === messageId)) return
  throw new Error('it left out the message that calls tools. Return it without the calls, or reject it with abort().')
}

const noChange = Object.freeze({})

function firstModel(run: Run) {
  const [first] = run.models
  // The first model is loaded before the run starts.
  if (!first || typeof first.model === 'function') throw new HeedError('model_missing', `Agent '${run.agent.id}' has no model.`)
  return first.model
}
