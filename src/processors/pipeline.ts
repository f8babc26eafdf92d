import type { Chunk } from '../run/chunk.ts'
import type { Run } from '../run/run.ts'
import type { StepRecorder } from '../run/step-recorder.ts'
import { HeedError, isHeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import { MessageList } from '../message/list.ts'
import type { Message, ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { stepsOf } from '../message/step.ts'
import { sendState } from './lane-of-run.ts'
import type { InputStepChange, MessagesResult, Processor, ProcessorContext } from './processor.ts'
import { TripwireAbort } from './tripwire.ts'

type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId'>

const streamMemory = 1_000

/** The processors of one run, asked at each place of the loop where they may speak. Without any, each place costs a comparison. */
export class ProcessorPipeline {
  readonly #input: readonly Processor[]
  readonly #output: readonly Processor[]
  readonly #maxRetries: number
  readonly #states = new Map<string, Record<string, unknown>>()
  readonly #seen: Chunk[] = []
  readonly #hooks: ReadonlySet<Hook>

  constructor(input: readonly Processor[], output: readonly Processor[], maxRetries: number) {
    this.#input = input
    this.#output = output
    this.#maxRetries = maxRetries
    this.#hooks = new Set([...input, ...output].flatMap((processor) => hooks.filter((hook) => typeof processor[hook] === 'function')))
  }

  get watchesStream(): boolean {
    return this.#hooks.has('processOutputStream')
  }

  get handlesErrors(): boolean {
    return this.#hooks.has('processAPIError')
  }

  /** What enters, as it may enter; nothing when it may enter as it is. */
  async input(run: Run, rows: readonly MessageRow[]): Promise<MessageRow[] | undefined> {
    if (!this.#hooks.has('processInput')) return undefined
    const known = new Set(rows)
    const list = listOf(run, (row) => (known.has(row) ? 'input' : undefined))
    for (const processor of this.#input) {
      const messages = list.get.input.db()
      const result = await this.#ask(run, processor, 'processInput', (context) =>
        processor.processInput?.({ ...context, messages, messageList: list, systemMessages: run.system }))
      const pair = result && !(result instanceof MessageList) && !Array.isArray(result) ? result : undefined
      if (pair?.systemMessages) run.system = pair.systemMessages
      apply(list, messages, pair ? pair.messages : (result as MessagesResult | undefined), 'input', processor)
    }
    const admitted = list.rows('input')
    return sameRows(admitted, rows) ? undefined : admitted
  }

  /** What this step's call is made with, besides the run's own. */
  async inputStep(run: Run): Promise<Omit<InputStepChange, 'messages' | 'messageList' | 'systemMessages'>> {
    if (!this.#hooks.has('processInputStep') && !this.#hooks.has('computeStateSignal')) return noChange
    const change: InputStepChange = {}
    const list = listOf(run, () => undefined)
    for (const processor of this.#input) {
      const messages = list.get.all.db()
      const result = await this.#ask(run, processor, 'processInputStep', (context) =>
        processor.processInputStep?.({
          ...context,
          messages,
          messageList: list,
          systemMessages: run.system,
          stepNumber: run.step,
          steps: run.steps,
          model: change.model ?? firstModel(run),
          tools: run.tools.definitions,
          toolChoice: change.toolChoice,
          activeTools: change.activeTools ?? run.options.activeTools,
          modelSettings: change.modelSettings ?? run.options.modelSettings ?? {},
          providerOptions: change.providerOptions ?? run.options.providerOptions,
        }))
      const step = result && !(result instanceof MessageList) && !Array.isArray(result) ? result : undefined
      if (step?.systemMessages) run.system = step.systemMessages
      if (step) Object.assign(change, step)
      apply(list, messages, step ? (step.messageList ?? step.messages) : (result as MessagesResult | undefined), 'all', processor)
    }
    for (const processor of this.#input) {
      if (processor.computeStateSignal) await this.#ask(run, processor, 'computeStateSignal', (context) => sendState(run, processor, context, list))
    }
    const shown = list.rows()
    if (!sameRows(shown, run.rows)) run.show(shown)
    return change
  }

  async outputStream(run: Run, chunk: Chunk): Promise<Chunk | null> {
    let shown = chunk
    for (const processor of this.#output) {
      const part = shown
      const result: Chunk | null | undefined | void = await this.#ask(run, processor, 'processOutputStream', (context) =>
        processor.processOutputStream?.({ ...context, part, streamParts: this.#seen }))
      if (result === null) return null
      if (result) shown = result
    }
    this.#seen.push(shown)
    if (this.#seen.length > streamMemory) this.#seen.splice(0, streamMemory / 2)
    return shown
  }

  /** Answers what the model has to be told when it is to be asked again. */
  async outputStep(run: Run, said: StepRecorder, row: MessageRow | undefined): Promise<string | undefined> {
    if (!this.#hooks.has('processOutputStep')) return undefined
    const list = responseOf(run, row)
    for (const processor of this.#output) {
      try {
        await this.#ask(run, processor, 'processOutputStep', (context) =>
          processor.processOutputStep?.({
            ...context,
            messages: list.get.response.db(),
            messageList: list,
            stepNumber: run.step,
            steps: run.steps,
            text: said.text,
            toolCalls: said.calls.map(({ part: { toolInvocation } }) => toolInvocation),
            finishReason: said.finishReason,
            usage: said.usage,
          }))
      } catch (error) {
        if (!(error instanceof TripwireAbort) || !error.tripwire.retry || run.retries >= this.#maxRetries) throw error
        run.retries++
        await run.say(run.chunk('tripwire', error.tripwire))
        return `The last answer was not accepted: ${error.tripwire.reason}. Answer again.`
      }
    }
    return undefined
  }

  async toolResult(run: Run, invocation: ToolInvocation, result: JSONValue): Promise<JSONValue> {
    if (!this.#hooks.has('processToolResult')) return result
    const { toolName, toolCallId, args } = invocation
    let seen = result
    for (const processor of this.#output) {
      const changed = await this.#ask(run, processor, 'processToolResult', (context) =>
        processor.processToolResult?.({ ...context, stepNumber: run.step, toolName, toolCallId, args, result: seen }))
      if (changed) seen = changed.result
    }
    return seen
  }

  /** The rows of the answer as they may be stored. */
  async outputResult(run: Run, said: StepRecorder, row: MessageRow | undefined): Promise<MessageRow[]> {
    if (!row) return []
    if (!this.#hooks.has('processOutputResult')) return [row]
    const list = responseOf(run, row)
    for (const processor of this.#output) {
      const messages = list.get.response.db()
      const result = await this.#ask(run, processor, 'processOutputResult', (context) =>
        processor.processOutputResult?.({
          ...context,
          messages,
          messageList: list,
          result: { text: said.text, usage: run.usage, finishReason: said.finishReason, steps: run.steps },
        }))
      apply(list, messages, result, 'response', processor)
    }
    return list.rows('response').includes(row) ? [row] : revised(row, list.get.response.db(), said)
  }

  async apiError(run: Run, error: HeedError): Promise<boolean> {
    const list = listOf(run, () => undefined)
    for (const processor of [...this.#input, ...this.#output]) {
      const result = await this.#ask(run, processor, 'processAPIError', (context) =>
        processor.processAPIError?.({ ...context, error, stepNumber: run.step, messages: list.get.all.db(), messageList: list }))
      if (result?.retry) return true
    }
    return false
  }

  async #ask<T>(run: Run, processor: Processor, hook: Hook, call: (context: ProcessorContext) => T | Promise<T>): Promise<T | undefined> {
    if (typeof processor[hook] !== 'function') return undefined
    try {
      return await call(this.#context(run, processor))
    } catch (error) {
      if (error instanceof TripwireAbort || (isHeedError(error) && error.code === 'fenced')) throw error
      throw new HeedError('processor_failed', `Processor '${processor.id}' failed in ${hook}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }

  #context(run: Run, processor: Processor): ProcessorContext {
    let state = this.#states.get(processor.id)
    if (!state) this.#states.set(processor.id, (state = {}))
    return {
      agent: run.agent,
      runId: run.id,
      ...(run.threadId === undefined ? {} : { threadId: run.threadId }),
      ...(run.resourceId === undefined ? {} : { resourceId: run.resourceId }),
      requestContext: run.requestContext,
      abortSignal: run.signal,
      logger: run.logger,
      state,
      retryCount: run.retries,
      abort(reason = `Refused by ${processor.id}`, options = {}): never {
        throw new TripwireAbort({
          reason,
          processorId: processor.id,
          ...(options.retry ? { retry: true } : {}),
          ...(options.metadata === undefined ? {} : { metadata: options.metadata }),
        })
      },
      sendSignal: (signal) => run.sendSignal(signal),
    }
  }
}

const hooks: Hook[] = [
  'processInput', 'processInputStep', 'computeStateSignal', 'processOutputStream', 'processOutputStep', 'processToolResult',
  'processOutputResult', 'processAPIError',
]
const noChange = Object.freeze({})

/** The list a hook sees: history as memory, what this run said as response, and what `input` names as input. */
function listOf(run: Run, input: (row: MessageRow) => 'input' | undefined): MessageList {
  const list = new MessageList({ newId: run.newId, now: () => new Date(run.clock.now()) })
  for (const row of run.rows) list.add(row, input(row) ?? (row.runId === run.id && row.role !== 'user' && row.role !== 'signal' ? 'response' : 'memory'))
  return list
}

function responseOf(run: Run, row: MessageRow | undefined): MessageList {
  const list = listOf(run, () => undefined)
  if (row) list.add(row, 'response')
  return list
}

function apply(list: MessageList, before: Message[], result: MessagesResult | undefined | void, source: 'input' | 'response' | 'all', processor: Processor): void {
  if (result === undefined || result === before || result === list) return
  if (result instanceof MessageList) {
    throw new HeedError('processor_failed', `Processor '${processor.id}' returned a MessageList of its own. Change the one it was given, or return an array of messages.`)
  }
  if (!Array.isArray(result)) throw new HeedError('processor_failed', `Processor '${processor.id}' returned neither messages nor nothing.`)
  list.replace(result, source)
}

function sameRows(a: readonly MessageRow[], b: readonly MessageRow[]): boolean {
  return a.length === b.length && a.every((row, index) => row === b[index])
}

/** Steps before the last are stored; of a changed answer, what belongs to the last step takes the place of its row. */
function revised(row: MessageRow, messages: Message[], said: StepRecorder): MessageRow[] {
  const message = messages.findLast((candidate) => candidate.id === row.messageId)
  if (!message) return []
  const step = stepsOf(message.content.parts).at(-1)
  const parts = step ? step.parts : message.content.parts
  said.text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return [{ ...row, content: { ...message.content, parts } }]
}

function firstModel(run: Run) {
  const [first] = run.models
  if (!first) throw new HeedError('model_missing', `Agent '${run.agent.id}' has no model.`)
  return first.model
}

