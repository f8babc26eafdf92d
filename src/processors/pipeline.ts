import type { Chunk } from '../run/chunk.ts'
import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { HookCall } from './hook-call.ts'
import { allHooks, having, type Hook } from './hooks.ts'
import { isPromise, whenKnown } from './in-time.ts'
import { sendState } from './lane-of-run.ts'
import { PartOfRun } from './part-of-run.ts'
import type { Processor, ProcessorContext, ProcessOutputResultArgs } from './processor.ts'
import { changeIn, chunkIn, jsonIn, objectIn, systemIn } from './returned.ts'
import { isResponse, revisedStep, RunMessages } from './run-messages.ts'
import { stepChangeIn, type StepChange } from './step-change.ts'
import { TripwireAbort } from './tripwire.ts'

const streamMemory = 1_000

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
  readonly canRefuse: boolean
  /** Whether anybody looks at what enters. */
  readonly readsInput: boolean
  readonly watchesStream: boolean
  readonly handlesErrors: boolean
  /** Whether anybody looks at what was said as a whole. */
  readonly checksAnswers: boolean
  /** The lanes that processors of this run keep. */
  readonly lanes: ReadonlySet<string>
  readonly #asked: Record<Hook, readonly Processor[]>
  readonly #maxRetries: number
  /** What each is given at every place. */
  readonly #perProcessor = new Map<Processor, Given>()
  readonly #seen: Chunk[] = []
  readonly #messages = new RunMessages()

  constructor(input: readonly Processor[], output: readonly Processor[], maxRetries: number) {
    this.#asked = {
      processInput: having(input, 'processInput'),
      processInputStep: having(input, 'processInputStep'),
      computeStateSignal: having(input, 'computeStateSignal'),
      processOutputStream: having(output, 'processOutputStream'),
      processOutputStep: having(output, 'processOutputStep'),
      processToolResult: having(output, 'processToolResult'),
      processOutputResult: having(output, 'processOutputResult'),
      // One that is in both lists is asked once.
      processAPIError: [...new Set([...having(input, 'processAPIError'), ...having(output, 'processAPIError')])],
    }
    this.#maxRetries = maxRetries
    this.canRefuse = allHooks.some((hook) => this.#asked[hook].length > 0)
    this.readsInput = this.#asked.processInput.length > 0
    this.checksAnswers = this.#asked.processOutputResult.length > 0
    this.watchesStream = this.#asked.processOutputStream.length > 0
    this.handlesErrors = this.#asked.processAPIError.length > 0
    this.lanes = new Set(this.#asked.computeStateSignal.map(({ id, stateId }) => stateId ?? id))
  }

  /** What enters, as it may enter; nothing when it may enter as it is. `outside`: the run doesn't have these rows. */
  async input(run: Run, rows: readonly MessageRow[], outside = false): Promise<MessageRow[] | undefined> {
    if (!this.readsInput) return undefined
    const own = new Set(rows)
    const part = new PartOfRun(run, rows, { source: 'input', sourceOf: (row) => (own.has(row) ? 'input' : isResponse(run, row) ? 'response' : 'memory'), ...(outside ? { earlier: rows } : {}) })
    for (const processor of this.#asked.processInput) {
      const call = new HookCall(run, processor, 'processInput')
      const { messages } = part
      const args = { ...this.#given(run, processor), retryCount: run.retries, abort: call.abort, sendSignal: call.sendSignal, messages, messageList: part.list, systemMessages: run.system }
      const asked = call.ask(args, (returned) => {
        if (returned === undefined) return
        const change = changeIn<{ messages?: unknown; systemMessages?: unknown }>(returned, ['messages', 'systemMessages'])
        if (change?.systemMessages !== undefined) run.system = systemIn(change.systemMessages)
        part.take(messages, change ? change.messages : returned)
      })
      if (asked) await asked
    }
    const added = part.list.systemMessages().filter(({ content }) => !run.system.some((told) => told.content === content))
    if (added.length > 0) run.system = [...run.system, ...(added as typeof run.system)]
    return part.changed
  }

  /** What this step's call is made with, besides the run's own. */
  async inputStep(run: Run): Promise<Omit<StepChange, 'messages' | 'messageList'>> {
    const { processInputStep, computeStateSignal } = this.#asked
    if (processInputStep.length + computeStateSignal.length === 0) return noChange
    const change: StepChange = {}
    const part = this.#messages.all(run)
    for (const processor of processInputStep) {
      const call = new HookCall(run, processor, 'processInputStep')
      const { messages } = part
      const activeTools = change.activeTools ?? run.options.activeTools
      const asked = call.ask({
        ...this.#given(run, processor),
        retryCount: run.retries,
        abort: call.abort,
        sendSignal: call.sendSignal,
        messages,
        messageList: part.list,
        systemMessages: change.systemMessages ?? run.system,
        stepNumber: run.step,
        steps: run.steps,
        model: change.model ?? firstModel(run),
        tools: run.tools.definitions,
        toolChoice: change.toolChoice,
        activeTools,
        modelSettings: change.modelSettings ?? run.options.modelSettings ?? {},
        providerOptions: change.providerOptions ?? run.options.providerOptions,
      }, (returned) => {
        if (returned === undefined) return
        const step = stepChangeIn(returned, run, activeTools)
        part.take(messages, step ? (step.messageList ?? step.messages) : returned)
        Object.assign(change, step)
      })
      if (asked) await asked
    }
    for (const processor of computeStateSignal) {
      const call = new HookCall(run, processor, 'computeStateSignal')
      await sendState(run, processor, call, { ...this.#given(run, processor), retryCount: run.retries, abort: call.abort, sendSignal: call.sendSignal }, part)
    }
    const shown = part.changed
    if (shown) run.showOnce(shown)
    const added = part.list.systemMessages()
    return added.length === 0 ? change : { ...change, systemMessages: [...(change.systemMessages ?? run.system), ...(added as typeof run.system)] }
  }

  /** What is shown in the place of a chunk, in order. */
  outputStream(run: Run, chunk: Chunk): Chunk[] | Promise<Chunk[]> {
    return whenKnown(this.#passed(run, [chunk], 0), (shown) => {
      for (const part of shown) this.#seen.push(part)
      if (this.#seen.length > streamMemory) this.#seen.splice(0, streamMemory / 2)
      return shown
    })
  }

  /** What the processors from the one at `from` on leave of chunks. */
  #passed(run: Run, chunks: Chunk[], from: number): Chunk[] | Promise<Chunk[]> {
    const { processOutputStream } = this.#asked
    let shown = chunks
    for (let index = from; index < processOutputStream.length; index++) {
      const made = this.#shown(run, processOutputStream[index] as Processor, shown, 0, [])
      if (isPromise(made)) return made.then((more) => this.#passed(run, more, index + 1))
      shown = made
    }
    return shown
  }

  /** What a processor makes of chunks, one after the other, after what it has `made` of those before `from`. */
  #shown(run: Run, processor: Processor, chunks: readonly Chunk[], from: number, made: Chunk[]): Chunk[] | Promise<Chunk[]> {
    for (let index = from; index < chunks.length; index++) {
      const part = chunks[index] as Chunk
      const call = new HookCall(run, processor, 'processOutputStream')
      const emit = (more: Chunk) => void made.push(chunkIn(more, part))
      const asked = call.ask({ ...this.#given(run, processor), retryCount: run.retries, abort: call.abort, sendSignal: call.sendSignal, part, streamParts: this.#seen, emit }, (returned) => {
        if (returned !== null) made.push(returned === undefined ? part : chunkIn(returned, part))
      })
      if (asked) return asked.then(() => this.#shown(run, processor, chunks, index + 1, made))
    }
    return made
  }

  /** What the model said as it may stand, or what it has to be told when it is asked again. */
  async outputStep(run: Run, said: StepRecorder, row: MessageRow | undefined): Promise<{ row: MessageRow | undefined } | { retry: string }> {
    const { processOutputStep } = this.#asked
    if (processOutputStep.length === 0) return { row }
    const part = this.#messages.said(run, row)
    for (const processor of processOutputStep) {
      const call = new HookCall(run, processor, 'processOutputStep')
      const { messages } = part
      try {
        const asked = call.ask({
          ...this.#given(run, processor),
          retryCount: run.retries,
          abort: call.abort,
          sendSignal: call.sendSignal,
          messages,
          messageList: part.list,
          stepNumber: run.step,
          steps: run.steps,
          text: said.text,
          toolCalls: said.calls.map(({ part: { toolInvocation } }) => toolInvocation),
          finishReason: said.finishReason,
          usage: said.usage,
        }, (returned) => {
          if (returned === undefined) return
          part.take(messages, returned)
          if (row && said.calls.length > 0 && Array.isArray(returned)) checkCalls(part, row)
        })
        if (asked) await asked
      } catch (error) {
        return { retry: `The last answer was not accepted: ${this.#retried(run, error)}. Answer again.` }
      }
    }
    return { row: row && part.looked ? revisedStep(row, part.list, said) : row }
  }

  /** A tool's result as the model may see it. `refused`: the model is told why it doesn't see it. */
  async toolResult(run: Run, invocation: ToolInvocation, result: JSONValue, kind: ResultKind = {}): Promise<{ result: JSONValue } | { refused: string }> {
    const { toolName, toolCallId, args } = invocation
    const { isError = false, preliminary = false } = kind
    let seen = result
    for (const processor of this.#asked.processToolResult) {
      const call = new HookCall(run, processor, 'processToolResult')
      try {
        const asked = call.ask(
          { ...this.#given(run, processor), retryCount: run.retries, abort: call.abort, sendSignal: call.sendSignal, stepNumber: run.step, toolName, toolCallId, args, result: seen, isError, preliminary },
          (returned) => {
            const change = objectIn<{ result: JSONValue }>(returned, ['result'])
            if (change) seen = jsonIn(change.result, 'as the result')
          },
        )
        if (asked) await asked
      } catch (error) {
        // What is only on its way is not shown then, and the model is told nothing of it.
        if (preliminary && error instanceof TripwireAbort && error.tripwire.retry) return { refused: error.tripwire.reason }
        return { refused: `The result of ${toolName} was not accepted: ${this.#retried(run, error)}` }
      }
    }
    return { result: seen }
  }

  /** A segment as it may stay; nothing when it may stay as it is. `coming`: rows that have no place in history yet. */
  async outputResult(
    run: Run, segment: readonly MessageRow[], coming: readonly MessageRow[], result: ProcessOutputResultArgs['result'],
  ): Promise<MessageRow[] | undefined> {
    const own = new Set(segment)
    const part = new PartOfRun(run, segment, { source: 'response', sourceOf: (row) => (own.has(row) ? 'response' : 'memory'), coming })
    for (const processor of this.#asked.processOutputResult) {
      const call = new HookCall(run, processor, 'processOutputResult')
      const { messages } = part
      const given = this.#given(run, processor)
      const args = { ...given, retryCount: run.retries, abort: call.abort, sendSignal: call.sendSignal, messages, messageList: part.list, result }
      if (call.closing) args.abortSignal = call.closing.signal
      const asked = call.ask(args, (returned) => part.take(messages, returned))
      if (asked) await asked
    }
    return part.changed
  }

  async apiError(run: Run, error: HeedError): Promise<boolean> {
    const part = this.#messages.all(run)
    for (const processor of this.#asked.processAPIError) {
      const call = new HookCall(run, processor, 'processAPIError')
      let retry = false
      const { messages } = part
      const asked = call.ask({ ...this.#given(run, processor), retryCount: run.retries, abort: call.abort, sendSignal: call.sendSignal, error, stepNumber: run.step, messages, messageList: part.list }, (returned) => {
        const { retry: wanted = false } = objectIn<{ retry: unknown }>(returned, ['retry']) ?? {}
        if (typeof wanted !== 'boolean') throw new Error('it returned no { retry } that is true or false.')
        retry = wanted
      })
      if (asked) await asked
      if (retry) return true
    }
    return false
  }

  /** Counts a refusal after which the model is asked again, and answers its reason. Throws every other error. */
  #retried(run: Run, error: unknown): string {
    if (!(error instanceof TripwireAbort) || !error.tripwire.retry || run.retries >= this.#maxRetries || run.atLimit) throw error
    run.retries++
    run.tell(run.chunk('tripwire', error.tripwire))
    return error.tripwire.reason
  }

  #given(run: Run, processor: Processor): Given {
    let given = this.#perProcessor.get(processor)
    if (!given) this.#perProcessor.set(processor, (given = givenTo(run)))
    return given
  }
}

/** What the model said with calls is not gone because a hook gave nothing back: whoever wants that refuses. */
function checkCalls(part: PartOfRun, { messageId }: MessageRow): void {
  if (part.messages.some(({ id }) => id === messageId)) return
  throw new Error('it returned messages without the one that calls tools. Return it without the calls, or refuse with abort().')
}

/** What of a context stays the same for the whole run. */
type Given = Omit<ProcessorContext, 'retryCount' | 'sendSignal' | 'abort'>

function givenTo(run: Run): Given {
  return {
    agent: run.agent,
    runId: run.id,
    ...(run.threadId === undefined ? {} : { threadId: run.threadId }),
    ...(run.resourceId === undefined ? {} : { resourceId: run.resourceId }),
    requestContext: run.requestContext,
    abortSignal: run.signal,
    logger: run.logger,
    state: {},
  }
}

const noChange = Object.freeze({})

function firstModel(run: Run) {
  const [first] = run.models
  // The first is loaded before the run begins.
  if (!first || typeof first.model === 'function') throw new HeedError('model_missing', `Agent '${run.agent.id}' has no model.`)
  return first.model
}
