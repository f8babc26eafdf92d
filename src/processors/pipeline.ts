import type { Chunk } from '../run/chunk.ts'
import type { Run } from '../run/loop/run.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { isPromise } from '../base/is-promise.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { apiErrorArgs, contextFor, inputArgs, inputStepArgs, outputResultArgs, outputStepArgs, outputStreamArgs, toolResultArgs } from './hook-args.ts'
import type { HookCall } from './hook-call.ts'
import type { HookOf } from './hooks.ts'
import { whenKnown } from './in-time.ts'
import { sendState } from './lane-of-run.ts'
import { PartOfRun } from './part-of-run.ts'
import type { Processor, ProcessInputArgs, ProcessInputStepArgs, ProcessOutputResultArgs, ProcessOutputStepArgs } from './processor.ts'
import { changeIn, jsonIn, objectIn, systemIn } from './returned.ts'
import { emittedChunk, returnedChunk } from './returned-chunk.ts'
import { revisedStep, RunMessages } from './run-messages.ts'
import { allSeats, seatsOf, type Seats } from './bound-processors.ts'
import { stepChangeIn, type StepChange } from './step-change.ts'
import { TripwireAbort } from './tripwire.ts'

const streamMemory = 1_000
const noLanes: ReadonlySet<string> = new Set()

type Lists = readonly [input: readonly Processor[], output: readonly Processor[]]
const nobody: Lists = [[], []]

/** Most hooks answer at once, and then so does the place that asks them. */
type Known<T> = T | Promise<T>

/** What is told of a tool's result besides what it is. */
export interface ResultKind {
  isError?: boolean
  preliminary?: boolean
}

/**
 * The processors of one run, asked at each place of the loop where they may speak. Without any, each place costs a comparison; hooks that
 * answer at once are asked one after the other without a turn of promises between them.
 */
export class ProcessorPipeline {
  /** Any of them may refuse: what the run does counts when it is over. */
  declare readonly canRefuse: boolean
  /** Whether anybody looks at what enters. */
  declare readonly readsInput: boolean
  /** Whether anybody may refuse it before a model reads it. */
  declare readonly guardsInput: boolean
  declare readonly watchesStream: boolean
  declare readonly handlesErrors: boolean
  /** Whether anybody looks at what was said as a whole. */
  declare readonly checksAnswers: boolean
  /** The lanes that processors of this run keep. */
  declare readonly lanes: ReadonlySet<string>
  declare private readonly changesSteps: boolean
  declare private readonly checksSteps: boolean
  declare private readonly lists: Lists
  declare private readonly maxRetries: number
  /** Made when they are first asked. */
  declare private seats: Seats | undefined
  declare private seen: Chunk[] | undefined
  declare private messages: RunMessages | undefined

  /** Looks at every processor in every run: a list, and what is in it, may change between two. */
  constructor(input: readonly Processor[], output: readonly Processor[], maxRetries: number) {
    let readsInput = false, changesSteps = false, watchesStream = false, checksSteps = false, checksResults = false, checksAnswers = false, handlesErrors = false
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
      checksResults ||= processor.processToolResult !== undefined
      checksAnswers ||= processor.processOutputResult !== undefined
      handlesErrors ||= processor.processAPIError !== undefined
    }
    const canRefuse = readsInput || changesSteps || lanes !== undefined || watchesStream || checksSteps || checksResults || checksAnswers || handlesErrors
    this.canRefuse = canRefuse
    this.readsInput = readsInput
    this.guardsInput = readsInput || changesSteps || lanes !== undefined
    this.watchesStream = watchesStream
    this.handlesErrors = handlesErrors
    this.checksAnswers = checksAnswers
    this.lanes = lanes ?? noLanes
    this.changesSteps = changesSteps || lanes !== undefined
    this.checksSteps = checksSteps
    this.lists = canRefuse ? [input.slice(), output.slice()] : nobody
    this.maxRetries = maxRetries
    this.seats = undefined
    this.seen = undefined
    this.messages = undefined
  }

  private seatsOf(run: Run): Seats {
    return (this.seats ??= seatsOf(run, this.lists[0], this.lists[1]))
  }

  private get streamed(): Chunk[] {
    return (this.seen ??= [])
  }

  private get whole(): RunMessages {
    return (this.messages ??= new RunMessages())
  }

  /** What enters, as it may enter; nothing when it may enter as it is. `outside`: the run doesn't have these rows. */
  input(run: Run, rows: readonly MessageRow[], outside = false): Known<MessageRow[] | undefined> {
    if (!this.readsInput) return undefined
    const part = new PartOfRun(run, rows, 'input', outside ? rows : undefined)
    const take = (returned: unknown, { messages }: ProcessInputArgs) => {
      if (returned === undefined) return
      const change = changeIn<{ messages?: unknown; systemMessages?: unknown }>(returned, ['messages', 'systemMessages'])
      if (change?.systemMessages !== undefined) run.system = systemIn(change.systemMessages)
      part.take(messages, change ? change.messages : returned)
    }
    const asked = eachInTurn(this.seatsOf(run).input, (seat) => {
      const { processInput } = seat.processor
      if (!processInput) return undefined
      const call = seat.next('processInput', part)
      return call.ask(processInput, inputArgs(run, call, part), take)
    })
    return asked ? asked.then(() => entered(run, part)) : entered(run, part)
  }

  /** What this step's call is made with, besides the run's own. */
  inputStep(run: Run): Known<Omit<StepChange, 'messages' | 'messageList'>> {
    if (!this.changesSteps) return noChange
    const change: StepChange = {}
    const part = this.whole.all(run)
    const model = firstModel(run)
    const take = (returned: unknown, { messages, activeTools }: ProcessInputStepArgs) => {
      if (returned === undefined) return
      const step = stepChangeIn(returned, run, activeTools)
      part.take(messages, step ? (step.messageList ?? step.messages) : returned)
      Object.assign(change, step)
    }
    const asked = eachInTurn(this.seatsOf(run).input, (seat) => {
      const { processInputStep } = seat.processor
      if (!processInputStep) return undefined
      const call = seat.next('processInputStep')
      return call.ask(processInputStep, inputStepArgs(run, call, part, change, model), take)
    })
    const told = asked ? asked.then(() => this.tellLanes(run, part)) : this.tellLanes(run, part)
    return told ? told.then(() => changedStep(run, part, change)) : changedStep(run, part, change)
  }

  private tellLanes(run: Run, part: PartOfRun): Promise<void> | undefined {
    if (this.lanes.size === 0) return undefined
    return eachInTurn(this.seatsOf(run).input, (seat) => {
      const { computeStateSignal } = seat.processor
      if (!computeStateSignal) return undefined
      const call = seat.next('computeStateSignal')
      return sendState(run, seat.processor, computeStateSignal, call, contextFor(run, call), part)
    })
  }

  /** What is shown in the place of a chunk, in order. */
  outputStream(run: Run, chunk: Chunk): Chunk[] | Promise<Chunk[]> {
    return whenKnown(this.passed(run, [chunk], 0), (shown) => {
      const { streamed } = this
      for (const part of shown) streamed.push(part)
      if (streamed.length > streamMemory) streamed.splice(0, streamMemory / 2)
      return shown
    })
  }

  /** What the processors from the one at `from` on leave of chunks. */
  private passed(run: Run, chunks: Chunk[], from: number): Chunk[] | Promise<Chunk[]> {
    const { output } = this.seatsOf(run)
    let shown = chunks
    for (let index = from; index < output.length; index++) {
      const seat = output[index] as HookCall
      const { processOutputStream } = seat.processor
      if (!processOutputStream) continue
      const made = this.shown(run, seat, processOutputStream, shown, 0, [])
      if (isPromise(made)) return made.then((more) => this.passed(run, more, index + 1))
      shown = made
    }
    return shown
  }

  /** What a processor makes of chunks, one after the other, after what it has `made` of those before `from`. */
  private shown(run: Run, seat: HookCall, hook: HookOf<'processOutputStream'>, chunks: readonly Chunk[], from: number, made: Chunk[]): Chunk[] | Promise<Chunk[]> {
    for (let index = from; index < chunks.length; index++) {
      const part = chunks[index] as Chunk
      const call = seat.next('processOutputStream')
      const emit = (more: Chunk) => void made.push(emittedChunk(more, part))
      const asked = call.ask(hook, outputStreamArgs(run, call, part, this.streamed, emit), (returned) => {
        const shown = returnedChunk(returned, part)
        if (shown) made.push(shown)
      })
      if (asked) return asked.then(() => this.shown(run, seat, hook, chunks, index + 1, made))
    }
    return made
  }

  /** What the model said as it may stand, or why it has to be asked again. */
  outputStep(run: Run, said: StepRecorder, row: MessageRow | undefined): Known<{ row: MessageRow | undefined } | { retry: string }> {
    if (!this.checksSteps) return { row }
    const part = this.whole.said(run, row)
    const toolCalls = said.calls.map(({ part: { toolInvocation } }) => toolInvocation)
    const take = (returned: unknown, { messages }: ProcessOutputStepArgs) => {
      if (returned === undefined) return
      part.take(messages, returned)
      if (row && said.calls.length > 0 && Array.isArray(returned)) checkCalls(part, row)
    }
    try {
      const asked = eachInTurn(this.seatsOf(run).output, (seat) => {
        const { processOutputStep } = seat.processor
        if (!processOutputStep) return undefined
        const call = seat.next('processOutputStep')
        return call.ask(processOutputStep, outputStepArgs(run, call, part, said, toolCalls), take)
      })
      if (!asked) return { row: standing(row, part, said) }
      return asked.then(() => ({ row: standing(row, part, said) }), (error: unknown) => ({ retry: this.retried(run, error) }))
    } catch (error) {
      return { retry: this.retried(run, error) }
    }
  }

  /** A tool's result as the model may see it. `refused`: the model is told why it doesn't see it. */
  async toolResult(run: Run, invocation: ToolInvocation, result: JSONValue, kind: ResultKind = {}): Promise<{ result: JSONValue } | { refused: string }> {
    const { toolName } = invocation
    const { isError = false, preliminary = false } = kind
    let seen = result
    const take = (returned: unknown) => {
      const change = objectIn<{ result: JSONValue }>(returned, ['result'])
      if (change) seen = jsonIn(change.result, 'as the result')
    }
    try {
      await eachInTurn(this.seatsOf(run).output, (seat) => {
        const { processToolResult } = seat.processor
        if (!processToolResult) return undefined
        const call = seat.next('processToolResult')
        return call.ask(processToolResult, toolResultArgs(run, call, invocation, seen, isError, preliminary), take)
      })
    } catch (error) {
      // What is only on its way is not shown then, and the model is told nothing of it.
      if (preliminary && error instanceof TripwireAbort && error.tripwire.retry) return { refused: error.tripwire.reason }
      return { refused: `The result of ${toolName} was not accepted: ${this.retried(run, error)}` }
    }
    return { result: seen }
  }

  /** A segment as it may stay; nothing when it may stay as it is. `coming`: rows that have no place in history yet. */
  outputResult(
    run: Run, segment: readonly MessageRow[], coming: readonly MessageRow[], result: ProcessOutputResultArgs['result'],
  ): Known<MessageRow[] | undefined> {
    const part = new PartOfRun(run, segment, 'segment', coming)
    const take = (returned: unknown, { messages }: ProcessOutputResultArgs) => part.take(messages, returned)
    const asked = eachInTurn(this.seatsOf(run).output, (seat) => {
      const { processOutputResult } = seat.processor
      if (!processOutputResult) return undefined
      const call = seat.next('processOutputResult')
      return call.ask(processOutputResult, outputResultArgs(run, call, part, result), take)
    })
    return asked ? asked.then(() => part.changed) : part.changed
  }

  async apiError(run: Run, error: HeedError): Promise<boolean> {
    const part = this.whole.all(run)
    let retry = false
    const take = (returned: unknown) => {
      const { retry: wanted = false } = objectIn<{ retry: unknown }>(returned, ['retry']) ?? {}
      if (typeof wanted !== 'boolean') throw new Error('it returned no { retry } that is true or false.')
      retry = wanted
    }
    await eachInTurn(allSeats(this.seatsOf(run)), (seat) => {
      const { processAPIError } = seat.processor
      if (!processAPIError || retry) return undefined
      const call = seat.next('processAPIError')
      return call.ask(processAPIError, apiErrorArgs(run, call, part, error), take)
    })
    return retry
  }

  /** Counts a refusal after which the model is asked again, and answers its reason. Throws every other error. */
  private retried(run: Run, error: unknown): string {
    if (!(error instanceof TripwireAbort) || !error.tripwire.retry || run.retries >= this.maxRetries || run.atLimit) throw error
    run.retries++
    run.emit(run.chunk('tripwire', error.tripwire))
    return error.tripwire.reason
  }
}

/** Asks one after the other. A promise only from where one makes the others wait. */
function eachInTurn(seats: readonly HookCall[], ask: (seat: HookCall) => Promise<void> | undefined): Promise<void> | undefined {
  for (let index = 0; index < seats.length; index++) {
    const asked = ask(seats[index] as HookCall)
    if (asked) return othersInTurn(seats, ask, index + 1, asked)
  }
  return undefined
}

async function othersInTurn(seats: readonly HookCall[], ask: (seat: HookCall) => Promise<void> | undefined, from: number, before: Promise<void>): Promise<void> {
  await before
  for (let index = from; index < seats.length; index++) {
    const asked = ask(seats[index] as HookCall)
    if (asked) await asked
  }
}

/** Input as processors left it, with what they added to the run's instructions. */
function entered(run: Run, part: PartOfRun): MessageRow[] | undefined {
  if (part.list.hasSystem) {
    const told = part.list.systemMessages().filter(({ content }) => !run.system.some((known) => known.content === content))
    run.system = [...run.system, ...(told as typeof run.system)]
  }
  return part.changed
}

function changedStep(run: Run, part: PartOfRun, change: StepChange): StepChange {
  const shown = part.changed
  if (shown) run.history.promptOnce(shown)
  if (!part.list.hasSystem) return change
  return { ...change, systemMessages: [...(change.systemMessages ?? run.system), ...(part.list.systemMessages() as typeof run.system)] }
}

function standing(row: MessageRow | undefined, part: PartOfRun, said: StepRecorder): MessageRow | undefined {
  return row && part.looked ? revisedStep(row, part.list, said) : row
}

/** What the model said with calls is not gone because a hook gave nothing back: whoever wants that refuses. */
function checkCalls(part: PartOfRun, { messageId }: MessageRow): void {
  if (part.messages.some(({ id }) => id === messageId)) return
  throw new Error('it returned messages without the one that calls tools. Return it without the calls, or refuse with abort().')
}

const noChange = Object.freeze({})

function firstModel(run: Run) {
  const [first] = run.models
  // The first is loaded before the run begins.
  if (!first || typeof first.model === 'function') throw new HeedError('model_missing', `Agent '${run.agent.id}' has no model.`)
  return first.model
}
