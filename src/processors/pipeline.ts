import type { Chunk } from '../run/chunk.ts'
import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import { describe, HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { sendState } from './lane-of-run.ts'
import type { InputStepChange, Processor, ProcessorContext, ProcessOutputResultArgs } from './processor.ts'
import { changeIn, chunkIn, jsonIn, systemIn, takeMessages } from './returned.ts'
import { PartOfRun } from './part-of-run.ts'
import { revisedStep, RunMessages, sameRows } from './run-messages.ts'
import { inTime, isPromise, isTimeout, whenKnown, type Wait } from './in-time.ts'
import { refusal, TripwireAbort } from './tripwire.ts'

type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId' | 'maxDeltas' | 'timeoutMs'>

const hooks: readonly Hook[] = [
  'processInput', 'processInputStep', 'computeStateSignal', 'processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult',
  'processAPIError',
]
const streamMemory = 1_000
const stepChanges = ['messages', 'messageList', 'systemMessages', 'model', 'toolChoice', 'activeTools', 'modelSettings', 'providerOptions']

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
  readonly #input: readonly Processor[]
  readonly #output: readonly Processor[]
  readonly #maxRetries: number
  /** What each is given at every place. */
  readonly #given = new Map<Processor, Given>()
  readonly #seen: Chunk[] = []
  readonly #messages = new RunMessages()

  constructor(input: readonly Processor[], output: readonly Processor[], maxRetries: number) {
    this.#input = input
    this.#output = output
    this.#maxRetries = maxRetries
    this.canRefuse = hooks.some((hook) => have(input, hook) || have(output, hook))
    this.readsInput = have(input, 'processInput')
    this.checksAnswers = have(output, 'processOutputResult')
    this.watchesStream = have(output, 'processOutputStream')
    this.lanes = new Set(input.filter((processor) => typeof processor.computeStateSignal === 'function').map(({ id, stateId }) => stateId ?? id))
    this.handlesErrors = have(input, 'processAPIError') || have(output, 'processAPIError')
  }

  /** What enters, as it may enter; nothing when it may enter as it is. */
  async input(run: Run, rows: readonly MessageRow[]): Promise<MessageRow[] | undefined> {
    if (!this.readsInput) return undefined
    const entering = new PartOfRun(run, rows, 'input')
    const { list } = entering
    for (const processor of this.#input) {
      const asked = this.#ask(run, processor, 'processInput', (context, wait) => {
        const { messages } = entering
        return whenKnown(wait(processor.processInput?.({ ...context, messages, messageList: list, systemMessages: run.system })), (returned) => {
          const change = changeIn<InputStepChange>(returned, ['messages', 'systemMessages'])
          if (change?.systemMessages) run.system = systemIn(change.systemMessages)
          takeMessages(list, messages, change ? change.messages : returned, 'input')
        })
      })
      if (asked) await asked
    }
    const added = list.systemMessages().filter(({ content }) => !run.system.some((told) => told.content === content))
    if (added.length > 0) run.system = [...run.system, ...(added as typeof run.system)]
    return entering.changed
  }

  /** What this step's call is made with, besides the run's own. */
  async inputStep(run: Run): Promise<Omit<InputStepChange, 'messages' | 'messageList'>> {
    if (!have(this.#input, 'processInputStep') && !have(this.#input, 'computeStateSignal')) return noChange
    const change: InputStepChange = {}
    const list = this.#messages.of(run)
    for (const processor of this.#input) {
      const asked = this.#ask(run, processor, 'processInputStep', (context, wait) => {
        const messages = list.get.all.db()
        const returned = wait(processor.processInputStep?.({
          ...context,
          messages,
          messageList: list,
          systemMessages: change.systemMessages ?? run.system,
          stepNumber: run.step,
          steps: run.steps,
          model: change.model ?? firstModel(run),
          tools: run.tools.definitions,
          toolChoice: change.toolChoice,
          activeTools: change.activeTools ?? run.options.activeTools,
          modelSettings: change.modelSettings ?? run.options.modelSettings ?? {},
          providerOptions: change.providerOptions ?? run.options.providerOptions,
        }))
        return whenKnown(returned, (made) => {
          const step = changeIn<InputStepChange>(made, stepChanges)
          takeMessages(list, messages, step ? (step.messageList ?? step.messages) : made, 'all')
          if (step?.systemMessages) systemIn(step.systemMessages)
          Object.assign(change, step)
        })
      })
      if (asked) await asked
    }
    for (const processor of this.#input) {
      const asked = this.#ask(run, processor, 'computeStateSignal', (context, wait) => sendState(run, processor, context, list, wait))
      if (asked) await asked
    }
    const shown = list.rows()
    if (!sameRows(shown, run.rows)) run.showOnce(shown)
    const added = list.systemMessages()
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
    let shown = chunks
    for (let index = from; index < this.#output.length; index++) {
      const processor = this.#output[index]
      if (typeof processor?.processOutputStream !== 'function') continue
      const made = this.#shown(run, processor, shown, 0, [])
      if (isPromise(made)) return made.then((more) => this.#passed(run, more, index + 1))
      shown = made
    }
    return shown
  }

  /** What a processor makes of chunks, one after the other, after what it has `made` of those before `from`. */
  #shown(run: Run, processor: Processor, chunks: readonly Chunk[], from: number, made: Chunk[]): Chunk[] | Promise<Chunk[]> {
    const emit = (more: Chunk) => void made.push(chunkIn(more))
    for (let index = from; index < chunks.length; index++) {
      const part = chunks[index] as Chunk
      const asked = this.#ask(run, processor, 'processOutputStream', (context, wait) =>
        whenKnown(wait(processor.processOutputStream?.({ ...context, part, streamParts: this.#seen, emit })), (returned) => {
          if (returned !== null) made.push(returned === undefined ? part : chunkIn(returned))
        }))
      if (asked) return asked.then(() => this.#shown(run, processor, chunks, index + 1, made))
    }
    return made
  }

  /** What the model said as it may stand, or what it has to be told when it is asked again. */
  async outputStep(run: Run, said: StepRecorder, row: MessageRow | undefined): Promise<{ row: MessageRow | undefined } | { retry: string }> {
    if (!have(this.#output, 'processOutputStep')) return { row }
    const list = this.#messages.of(run, row)
    for (const processor of this.#output) {
      try {
        const asked = this.#ask(run, processor, 'processOutputStep', (context, wait) => {
          const messages = list.get.response.db()
          const returned = wait(processor.processOutputStep?.({
            ...context,
            messages,
            messageList: list,
            stepNumber: run.step,
            steps: run.steps,
            text: said.text,
            toolCalls: said.calls.map(({ part: { toolInvocation } }) => toolInvocation),
            finishReason: said.finishReason,
            usage: said.usage,
          }))
          return whenKnown(returned, (made) => takeMessages(list, messages, made, 'response'))
        })
        if (asked) await asked
      } catch (error) {
        return { retry: `The last answer was not accepted: ${this.#retried(run, error)}. Answer again.` }
      }
    }
    return { row: row && revisedStep(row, list, said) }
  }

  /** A tool's result as the model may see it. `refused`: the model is told why it doesn't see it. */
  async toolResult(run: Run, invocation: ToolInvocation, result: JSONValue): Promise<{ result: unknown } | { refused: string }> {
    if (!have(this.#output, 'processToolResult')) return { result }
    const { toolName, toolCallId, args } = invocation
    let seen = result
    for (const processor of this.#output) {
      try {
        const asked = this.#ask(run, processor, 'processToolResult', (context, wait) =>
          whenKnown(wait(processor.processToolResult?.({ ...context, stepNumber: run.step, toolName, toolCallId, args, result: seen })), (returned) => {
            const change = changeIn<{ result: JSONValue }>(returned, ['result'])
            if (change) seen = jsonIn(change.result, 'as the result')
          }))
        if (asked) await asked
      } catch (error) {
        return { refused: `The result of ${toolName} was not accepted: ${this.#retried(run, error)}` }
      }
    }
    return { result: seen }
  }

  /** A segment as it may stay; nothing when it may stay as it is. `coming`: rows that have no place in history yet. */
  async outputResult(
    run: Run, segment: readonly MessageRow[], coming: readonly MessageRow[], result: ProcessOutputResultArgs['result'],
  ): Promise<MessageRow[] | undefined> {
    const said = new PartOfRun(run, segment, 'response', coming)
    const { list } = said
    for (const processor of this.#output) {
      const asked = this.#ask(run, processor, 'processOutputResult', (context, wait) => {
        const { messages } = said
        const returned = wait(processor.processOutputResult?.({ ...context, messages, messageList: list, result }))
        return whenKnown(returned, (made) => takeMessages(list, messages, made, 'response'))
      })
      if (asked) await asked
    }
    return said.changed
  }

  async apiError(run: Run, error: HeedError): Promise<boolean> {
    const list = this.#messages.of(run)
    // One that is in both lists is asked once.
    for (const processor of new Set([...this.#input, ...this.#output])) {
      let retry = false
      const asked = this.#ask(run, processor, 'processAPIError', (context, wait) =>
        whenKnown(wait(processor.processAPIError?.({ ...context, error, stepNumber: run.step, messages: list.get.all.db(), messageList: list })), (returned) => {
          if (returned === undefined) return
          const { retry: wanted } = changeIn<{ retry: unknown }>(returned, ['retry']) ?? {}
          if (typeof wanted !== 'boolean') throw new Error('it returned no { retry } that is true or false.')
          retry = wanted
        }))
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

  /** A promise only where the hook, or what is done about its answer, makes one wait. */
  #ask(run: Run, processor: Processor, hook: Hook, call: (context: ProcessorContext, wait: Wait) => void | Promise<void>): Promise<void> | undefined {
    if (typeof processor[hook] !== 'function') return undefined
    const asked: Asked = { over: false }
    const failed = (error: unknown): never => {
      asked.over = true
      asked.closing?.abort()
      if (isTimeout(error) || isOfRun(run, error)) throw error
      if (asked.refusal) throw asked.refusal
      if (error instanceof TripwireAbort) throw error
      throw new HeedError('processor_failed', `Processor '${processor.id}' failed in ${hook}: ${describe(error)}`, { cause: error })
    }
    // A refusal counts, whatever the hook's own code made of it.
    const holdToRefusal = (): void => {
      if (asked.refusal) throw asked.refusal
    }
    // What was said before an abort is still looked at, by hooks that must not be told that it is over.
    if (hook === 'processOutputResult' && run.signal.aborted) asked.closing = new AbortController()
    try {
      const answered = call(this.#context(run, processor, hook, asked), (returned) => inTime(run, processor, hook, returned, asked.closing !== undefined))
      if (isPromise(answered)) return answered.then(holdToRefusal).catch(failed)
      holdToRefusal()
      return undefined
    } catch (error) {
      return failed(error)
    }
  }

  #context(run: Run, processor: Processor, hook: Hook, asked: Asked): ProcessorContext {
    let given = this.#given.get(processor)
    if (!given) this.#given.set(processor, (given = givenTo(run)))
    return {
      ...given,
      ...(asked.closing ? { abortSignal: asked.closing.signal } : {}),
      retryCount: run.retries,
      abort(reason, options): never {
        throw (asked.refusal = refusal(run, processor, reason, options))
      },
      // A chunk is being looked at: the echo of a signal can't wait until that is over.
      async sendSignal(signal) {
        if (asked.over) throw new HeedError('no_active_run', `Processor '${processor.id}' was given up in ${hook}: its signal comes too late.`)
        return run.sendSignal(signal, hook === 'processOutputStream')
      },
    }
  }
}

/** One call of a hook. */
interface Asked {
  /** It was given up. */
  over: boolean
  refusal?: TripwireAbort
  /** Of a call that the end of the run does not end. */
  closing?: AbortController
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

function have(processors: readonly Processor[], hook: Hook): boolean {
  return processors.some((processor) => typeof processor[hook] === 'function')
}

/** The run itself is over: it was aborted, or its host won't take any more of it. */
function isOfRun(run: Run, error: unknown): boolean {
  return (run.signal.aborted && error === run.signal.reason) || run.isLost(error)
}

function firstModel(run: Run) {
  const [first] = run.models
  // The first is loaded before the run begins.
  if (!first || typeof first.model === 'function') throw new HeedError('model_missing', `Agent '${run.agent.id}' has no model.`)
  return first.model
}
