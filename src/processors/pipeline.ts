import { HeedError, isHeedError } from '../base/errors.ts'
import { isPromise } from '../base/promises.ts'
import type { JSONValue } from '../base/json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import type { Chunk } from '../message/chunk.ts'
import type { Run } from '../run/loop/run.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { emittedChunk, returnedChunk } from './chunk-results.ts'
import { FailedInput } from './failed-input.ts'
import {
  apiErrorArgs, contextFor, inputArgs, inputStepArgs, outputResultArgs, outputStepArgs, outputStreamArgs, toolResultArgs,
} from './hook-args.ts'
import { allBound, bindProcessors, whenResolved, type BoundProcessors, type HookCall } from './hook-call.ts'
import { HookMessages, revisedStep, RunMessages } from './hook-messages.ts'
import { checkJSON, readChange, readObject, readStepChange, readSystemMessages, type StepChange } from './hook-results.ts'
import type { HookOf } from './hooks.ts'
import type { ProcessInputArgs, ProcessInputStepArgs, Processor, ProcessOutputResultArgs, ProcessOutputStepArgs } from './processor.ts'
import { computeState } from './state-signals.ts'
import { TripwireAbort } from './tripwire.ts'

const maxStreamParts = 1_000
const noLanes: ReadonlySet<string> = new Set()

type Lists = readonly [input: readonly Processor[], output: readonly Processor[]]
const noProcessors: Lists = [[], []]

/** A promise only where a hook returned one: most hooks return at once. */
type MaybePromise<T> = T | Promise<T>

export interface ResultKind {
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
  declare private readonly lists: Lists
  declare private readonly maxRetries: number
  /** Created with the first call of a hook. */
  declare private boundProcessors: BoundProcessors | undefined
  declare private streamed: Chunk[] | undefined
  declare private messages: RunMessages | undefined

  /** Inspects every processor for every run: a list and its processors may change between two runs. */
  constructor(input: readonly Processor[], output: readonly Processor[], maxRetries: number) {
    let readsInput = false, changesSteps = false, watchesStream = false, checksSteps = false
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
      watchesStream ||= processor.processOutputStream !== undefined
      checksSteps ||= processor.processOutputStep !== undefined
      checksToolResults ||= processor.processToolResult !== undefined
      checksOutput ||= processor.processOutputResult !== undefined
      handlesErrors ||= processor.processAPIError !== undefined
    }
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
    this.lists = canReject ? [input.slice(), output.slice()] : noProcessors
    this.maxRetries = maxRetries
    this.boundProcessors = undefined
    this.streamed = undefined
    this.messages = undefined
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

  /** The input after `processInput`; undefined when it is unchanged. `outside`: the run doesn't have these rows yet. */
  input(run: Run, rows: readonly MessageRow[], outside = false): MaybePromise<MessageRow[] | undefined> {
    if (!this.readsInput) return undefined
    const part = new HookMessages(run, rows, 'input', outside ? rows : undefined)
    const apply = (returned: unknown, { messages }: ProcessInputArgs) => {
      if (returned === undefined) return
      const change = readChange<{ messages?: unknown; systemMessages?: unknown }>(returned, ['messages', 'systemMessages'])
      if (change?.systemMessages !== undefined) run.system = readSystemMessages(change.systemMessages)
      part.apply(messages, change ? change.messages : returned)
    }
    const called = inSequence(this.bound(run).input, (bound) => {
      const { processInput } = bound.processor
      if (!processInput) return undefined
      const call = bound.next('processInput', part)
      return call.invoke(processInput, inputArgs(run, call, part), apply)
    })
    return called ? called.then(() => changedInput(run, part)) : changedInput(run, part)
  }

  /** The input as a processor left it that failed with a `FailedInput`; undefined after any other error. */
  failedInput(run: Run, rows: readonly MessageRow[], error: unknown, outside = false): MessageRow[] | undefined {
    const failure = isHeedError(error) ? error.cause : undefined
    if (!(failure instanceof FailedInput)) return undefined
    const part = new HookMessages(run, rows, 'input', outside ? rows : undefined)
    part.apply(part.messages, [...failure.messages])
    return part.changed
  }

  /** The options of this step's model call that processors changed. Adds the states of their lanes. */
  inputStep(run: Run): MaybePromise<Omit<StepChange, 'messages' | 'messageList'>> {
    if (!this.changesSteps) return noChange
    const change: StepChange = {}
    const part = this.runMessages.all(run)
    const model = firstModel(run)
    const apply = (returned: unknown, { messages, activeTools }: ProcessInputStepArgs) => {
      if (returned === undefined) return
      const step = readStepChange(returned, run, activeTools)
      part.apply(messages, step ? (step.messageList ?? step.messages) : returned)
      Object.assign(change, step)
    }
    const called = inSequence(this.bound(run).input, (bound) => {
      const { processInputStep } = bound.processor
      if (!processInputStep) return undefined
      const call = bound.next('processInputStep')
      return call.invoke(processInputStep, inputStepArgs(run, call, part, change, model), apply)
    })
    const computed = called ? called.then(() => this.computeStates(run, part)) : this.computeStates(run, part)
    return computed ? computed.then(() => changedStep(run, part, change)) : changedStep(run, part, change)
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

  /** The chunks to publish in place of a chunk, in order. */
  outputStream(run: Run, chunk: Chunk): Chunk[] | Promise<Chunk[]> {
    return whenResolved(this.throughFrom(run, [chunk], 0), (published) => {
      const { streamParts } = this
      for (const part of published) streamParts.push(part)
      if (streamParts.length > maxStreamParts) streamParts.splice(0, maxStreamParts / 2)
      return published
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
    const toolCalls = output.calls.map(({ part: { toolInvocation } }) => toolInvocation)
    const apply = (returned: unknown, { messages }: ProcessOutputStepArgs) => {
      if (returned === undefined) return
      part.apply(messages, returned)
      if (row && output.calls.length > 0 && Array.isArray(returned)) checkCalls(part, row)
    }
    try {
      const called = inSequence(this.bound(run).output, (bound) => {
        const { processOutputStep } = bound.processor
        if (!processOutputStep) return undefined
        const call = bound.next('processOutputStep')
        return call.invoke(processOutputStep, outputStepArgs(run, call, part, output, toolCalls), apply)
      })
      if (!called) return { row: changedRow(row, part, output) }
      return called.then(() => ({ row: changedRow(row, part, output) }), (error: unknown) => ({ retry: this.countRetry(run, error) }))
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
    let current = result
    const apply = (returned: unknown) => {
      const change = readObject<{ result: JSONValue }>(returned, ['result'])
      if (change) current = checkJSON(change.result, 'as the result')
    }
    try {
      await inSequence(this.bound(run).output, (bound) => {
        const { processToolResult } = bound.processor
        if (!processToolResult) return undefined
        const call = bound.next('processToolResult')
        return call.invoke(processToolResult, toolResultArgs(run, call, invocation, current, isError, preliminary), apply)
      })
    } catch (error) {
      // A preliminary result is not published then, and the model never receives it.
      if (preliminary && error instanceof TripwireAbort && error.tripwire.retry) return { rejected: error.tripwire.reason }
      return { rejected: `The result of ${toolName} was not accepted: ${this.countRetry(run, error)}` }
    }
    return { result: current }
  }

  /** The output of a segment after `processOutputResult`; undefined when it is unchanged. `uncommitted`: rows not in history yet. */
  outputResult(
    run: Run, segment: readonly MessageRow[], uncommitted: readonly MessageRow[], result: ProcessOutputResultArgs['result'],
  ): MaybePromise<MessageRow[] | undefined> {
    const part = new HookMessages(run, segment, 'segment', uncommitted)
    const apply = (returned: unknown, { messages }: ProcessOutputResultArgs) => part.apply(messages, returned)
    const called = inSequence(this.bound(run).output, (bound) => {
      const { processOutputResult } = bound.processor
      if (!processOutputResult) return undefined
      const call = bound.next('processOutputResult')
      return call.invoke(processOutputResult, outputResultArgs(run, call, part, result), apply)
    })
    return called ? called.then(() => part.changed) : part.changed
  }

  /** True when a processor wants the model call to be retried. */
  async apiError(run: Run, error: HeedError): Promise<boolean> {
    const part = this.runMessages.all(run)
    let retry = false
    const apply = (returned: unknown) => {
      const { retry: requested = false } = readObject<{ retry: unknown }>(returned, ['retry']) ?? {}
      if (typeof requested !== 'boolean') throw new Error('it returned a retry that is not true or false.')
      retry = requested
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

/** The input after the hooks. Adds their instructions to those of the run. */
function changedInput(run: Run, part: HookMessages): MessageRow[] | undefined {
  if (part.list.hasSystem) {
    const added = part.list.systemMessages().filter(({ content }) => !run.system.some((known) => known.content === content))
    run.system = [...run.system, ...(added as typeof run.system)]
  }
  return part.changed
}

function changedStep(run: Run, part: HookMessages, change: StepChange): StepChange {
  const changed = part.changed
  if (changed) run.history.promptOnce(changed)
  if (!part.list.hasSystem) return change
  return { ...change, systemMessages: [...(change.systemMessages ?? run.system), ...(part.list.systemMessages() as typeof run.system)] }
}

function changedRow(row: MessageRow | undefined, part: HookMessages, output: StepRecorder): MessageRow | undefined {
  return row && part.isRead ? revisedStep(row, part.list, output) : row
}

/** A message with tool calls can't be removed by leaving it out: a processor that wants that rejects it. */
function checkCalls(part: HookMessages, { messageId }: MessageRow): void {
  if (part.messages.some(({ id }) => id === messageId)) return
  throw new Error('it returned messages without the one that calls tools. Return it without the calls, or reject it with abort().')
}

const noChange = Object.freeze({})

function firstModel(run: Run) {
  const [first] = run.models
  // The first model is loaded before the run starts.
  if (!first || typeof first.model === 'function') throw new HeedError('model_missing', `Agent '${run.agent.id}' has no model.`)
  return first.model
}
