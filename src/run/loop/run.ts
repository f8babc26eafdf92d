import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool } from '@ai-sdk/provider'
import type { Clock } from '../../base/clock.ts'
import { describe, HeedError, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import { isPromise, untilAborted } from '../../base/promises.ts'
import type { JSONObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { MessageRow } from '../../message/row.ts'
import type { InputKind, ProcessorPipeline } from '../../processors/pipeline.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import { createdSignal, rowToSignal, signalToDataChunk, signalToRow } from '../../signals/conversions.ts'
import { normalizeSignal } from '../../signals/normalize.ts'
import type { CreatedAgentSignal, Signal, SignalInput } from '../../signals/signal.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import type { Chunk, ChunkPayloads, RunChunk, Usage } from '../../message/chunk.ts'
import { StreamRetries } from '../model/model-call.ts'
import { noUsage } from '../model/model-parts.ts'
import type { ResolvedModel } from '../model/model.ts'
import { defaultMaxSteps, type AgentExecutionOptions } from '../options.ts'
import type { StructuredOutput } from '../output/structured-output.ts'
import type { RequestContext } from '../request-context.ts'
import type { Shown, StepRecorder } from '../step/step-recorder.ts'
import type { StepEnd, StepResult } from '../step/step-result.ts'
import type { ResolvedTool, ToolSet } from '../tools/tool-set.ts'
import { ToolDisplay } from '../tools/payloads.ts'
import { RunHistory } from './run-history.ts'
import type { CallRecord, ContextSource, RunCommit, RunCommitted, RunHost, RunSetup, ToolPolicy } from './run-contract.ts'
import { SerialQueue } from './serial-queue.ts'

type CallbackName = 'onChunk' | 'onStepFinish' | 'onFinish' | 'onError' | 'onAbort'
type CallbackEvent<Name extends CallbackName> = Parameters<NonNullable<AgentExecutionOptions[Name]>>[0]

/** The reason with which new input aborts the stream of a step. */
export const interrupted = Symbol('interrupted')

/** The state of one run: its history, its steps, its own signals, and what stops it. It commits and publishes through its host. */
export class Run {
  readonly id: string
  readonly agent: { id: string; name: string }
  readonly threadId: string | undefined
  readonly resourceId: string | undefined
  readonly requestContext: RequestContext
  readonly options: AgentExecutionOptions
  readonly models: ResolvedModel[]
  readonly structured: StructuredOutput | undefined
  readonly processors: ProcessorPipeline
  readonly clock: Clock
  readonly logger: Logger
  readonly newId: () => string
  readonly host: RunHost
  /** Absent where no policies are configured. */
  readonly toolPolicy: ToolPolicy | undefined
  readonly agentOf: RunSetup['agentOf']
  /** Absent when tracing is off. */
  readonly trace: RunTrace | undefined
  readonly stepsDone: number
  /** Tags of the agent that signals may have. */
  readonly reservedTags: readonly string[]
  readonly tools: ToolSet
  readonly history: RunHistory
  readonly display: ToolDisplay
  readonly streamRetries = new StreamRetries()

  system: SystemMessage[]
  /** The tools that the model was offered in this step. */
  offeredTools: ReadonlyMap<string, ResolvedTool>
  readonly steps: StepResult[] = []
  usage: Usage = noUsage
  /** The end of the run is stored: nothing can be added to it. */
  ended = false
  /** The states of lanes that the window lacks, or has out of order, are in the prompt. */
  lanesRepeated = false
  /** The model call that ended last, until a commit stores it. */
  finishedCall: { call: Omit<CallRecord, 'finishReason' | 'usage'>; recorder: StepRecorder } | undefined
  /** How often processors requested another answer. */
  retries = 0
  /** The model was asked to correct an answer that does not match the schema. It is asked once. */
  repairRequested = false
  /** The step at which an output processor failed to check the segment: none of its text may stay. */
  uncheckedStep: StepEnd | undefined

  /** The first steps of the last answer and of the one being written: an answer whose stream broke goes on in the next step. */
  #answerStart = 0
  #nextAnswerStart = 0
  readonly #contextSources: readonly ContextSource[]
  /** Stream processors see chunks one after the other, however long each takes. */
  readonly #publishing = new SerialQueue()
  /** Signals that the run sent to itself and that are not stored yet. */
  #ownSignals: MessageRow[] = []
  #shownSteps: readonly StepResult[] | undefined
  /** Texts of context that processors rejected: sources offer them again in every step. */
  readonly #rejectedContext = new Set<string>()
  /** Created when its signal is first read. */
  #stop: AbortController | undefined
  #stream: AbortController | undefined
  #interruptNext = false
  #hostError: unknown = Symbol('none')

  constructor(setup: RunSetup, host: RunHost) {
    this.id = setup.id
    this.agent = setup.agent
    this.threadId = setup.threadId
    this.resourceId = setup.resourceId
    this.requestContext = setup.requestContext
    this.options = setup.options
    this.models = setup.models
    this.system = setup.system
    this.tools = setup.tools
    this.offeredTools = setup.tools.tools
    this.structured = setup.structured
    this.processors = setup.processors
    this.clock = setup.clock
    this.logger = setup.logger
    this.newId = setup.newId
    this.stepsDone = setup.stepsDone
    this.reservedTags = setup.reservedTags
    this.host = host
    this.toolPolicy = setup.toolPolicy
    this.agentOf = setup.agentOf
    this.trace = setup.trace
    this.history = new RunHistory(setup)
    this.display = new ToolDisplay(this, setup.transform)
    this.#contextSources = setup.context
  }

  get rows(): MessageRow[] {
    return this.history.rows
  }

  /** The message that the run is writing. */
  get messageId(): string {
    return this.history.message.id
  }

  get step(): number {
    return this.stepsDone + this.steps.length
  }

  /** This step is the last one that the options allow. */
  get atLimit(): boolean {
    return this.step + 1 >= (this.options.maxSteps ?? defaultMaxSteps)
  }

  /** Counts a committed step. */
  addStep(step: StepResult, broken: boolean): void {
    // Processors receive the steps: a change in place would not be stored.
    this.steps.push(Object.freeze(step))
    this.#shownSteps = undefined
    this.#answerStart = this.#nextAnswerStart
    if (!broken) this.#nextAnswerStart = this.steps.length
  }

  /** The steps for hooks: a change of the list would have no effect, and throws. */
  get shownSteps(): readonly StepResult[] {
    return (this.#shownSteps ??= Object.freeze(this.steps.slice()))
  }

  /** The answer so far: the text of the last step, preceded by the steps before it whose stream broke. */
  get text(): string {
    return this.#textFrom(this.#answerStart)
  }

  /** The text of broken streams that the current step continues. */
  get unfinishedText(): string {
    return this.#textFrom(this.#nextAnswerStart)
  }

  #textFrom(index: number): string {
    let text = ''
    for (let at = index; at < this.steps.length; at++) text += this.steps[at]?.text ?? ''
    return text
  }

  commit(commit: RunCommit): Promise<RunCommitted> {
    const { finishedCall } = this
    if (finishedCall) {
      this.finishedCall = undefined
      const { call, recorder } = finishedCall
      commit.call = Object.assign(call, { finishReason: recorder.finishReason, usage: recorder.usage })
    }
    return this.#ofHost(this.host.commit(commit))
  }

  /**
   * True for the error with which the host rejected this run or failed to store it: another process has the thread, or the thread
   * continues from its stored state. An error of foreign code with the same code does not count.
   */
  isLost(error: unknown): boolean {
    return error === this.#hostError || (isLoss(error) && this.signal.aborted && error === this.signal.reason)
  }

  async #ofHost<T>(result: Promise<T>): Promise<T> {
    try {
      return await result
    } catch (error) {
      this.#hostError = error
      throw error
    }
  }

  /** Runs the input processors on rows, and stores what they changed. */
  async processInput(rows: readonly MessageRow[], kind?: InputKind): Promise<void> {
    try {
      const result = this.processors.input(this, rows, kind)
      await this.#changeInput(rows, isPromise(result) ? await result : result)
    } catch (error) {
      await this.#changeInput(rows, this.processors.failedInput(this, rows, error, kind))
      throw error
    }
  }

  async #changeInput(rows: readonly MessageRow[], changed: readonly MessageRow[] | undefined): Promise<void> {
    if (changed) await this.#ofHost(this.host.reviseInput(this.history.changeInput(rows, changed)))
  }

  /** Aborts with the run. */
  get signal(): AbortSignal {
    this.#stop ??= new AbortController()
    return this.#stop.signal
  }

  abort(reason: unknown): void {
    this.#stop ??= new AbortController()
    this.#stop.abort(reason)
    this.#stream?.abort(this.#stop.signal.reason)
  }

  /** Waits for foreign code, but not beyond an abort of the run. */
  unlessAborted<T>(work: T | PromiseLike<T>): T | Promise<T> {
    return isPromise(work) ? untilAborted(work, this.signal) : work
  }

  /** Cuts the model's stream: its output is kept and new input enters. Between two streams, the next one, unless input enters before. */
  interrupt(): void {
    if (this.#stream) this.#stream.abort(interrupted)
    else this.#interruptNext = true
  }

  /** Input has entered: an interrupt that was requested for it is done. */
  clearInterrupt(): void {
    this.#interruptNext = false
  }

  /** The signal of one model stream: it aborts with the run, and when new input interrupts. */
  openStream(): AbortSignal {
    this.#stream = new AbortController()
    if (this.#stop?.signal.aborted) this.#stream.abort(this.#stop.signal.reason)
    if (this.#interruptNext) this.#stream.abort(interrupted)
    this.#interruptNext = false
    return this.#stream.signal
  }

  closeStream(): void {
    this.#stream = undefined
  }

  /**
   * Publishes a chunk, and returns what was published in its place. Returns a promise only where a stream processor has to see the
   * chunk first.
   */
  publish(chunk: Chunk): Shown | Promise<Shown> {
    if (!this.processors.watchesStream) {
      this.emit(chunk)
      return chunk
    }
    return this.#publishing.run(() => this.#process(chunk))
  }

  #process(chunk: Chunk): Shown | Promise<Shown> {
    const emitAll = (chunks: Chunk[]) => {
      for (const one of chunks) this.emit(one)
      return chunks
    }
    const processed = this.processors.outputStream(this, chunk)
    return isPromise(processed) ? processed.then(emitAll) : emitAll(processed)
  }

  /** Publishes a chunk that no stream processor may hold back, such as the end of the run. */
  emit(chunk: Chunk): void {
    this.host.emit(chunk)
    if (this.options.onChunk) this.notify('onChunk', chunk)
  }

  /** Publishes signals where they enter: subscribers see what the model reads, in the same order. */
  async echo(rows: readonly MessageRow[]): Promise<void> {
    for (const row of rows) if (row.role === 'signal') await this.publish(signalToDataChunk(rowToSignal(row), this.id))
  }

  chunk<Type extends keyof ChunkPayloads>(type: Type, payload: ChunkPayloads[Type], from: RunChunk['from'] = 'AGENT'): RunChunk {
    return { type, runId: this.id, from, payload } as RunChunk
  }

  /** Calls a callback of the caller. An error of it is logged and does not fail the run. */
  notify<Name extends CallbackName>(name: Name, event: CallbackEvent<Name>): void {
    const callback = this.options[name] as ((event: unknown) => void | Promise<void>) | undefined
    if (!callback) return
    const onError = (error: unknown) => {
      this.logger.error(`${name} of agent '${this.agent.id}' failed`, { runId: this.id, error: describe(error) })
    }
    try {
      Promise.resolve(callback(event)).catch(onError)
    } catch (error) {
      onError(error)
    }
  }

  /**
   * Sends a signal to this run. It is stored with the next commit. `unprocessed`: its echo skips the stream processors, as when one
   * of them sends it.
   */
  async sendSignal(input: SignalInput, unprocessed = false): Promise<CreatedAgentSignal> {
    if (this.ended) {
      const message = `Run ${this.id} has ended: it can't receive signals any more.`
      throw new HeedError('no_active_run', message, { details: { runId: this.id } })
    }
    const signal = this.#normalize(input)
    this.#ownSignals.push(this.#signalRow(signal))
    const echo = signalToDataChunk(signal, this.id)
    if (unprocessed) this.emit(echo)
    else await this.publish(echo)
    return createdSignal(signal)
  }

  /** Sends the state of a lane, and returns the stored rows. The store assigns the version, so it is stored before it is published. */
  async sendState(input: SignalInput, lane: Omit<NonNullable<RunCommit['lane']>, 'rowId'>): Promise<MessageRow[]> {
    const signal = this.#normalize(input)
    const sent = await this.commitOwnSignals()
    const own = this.#signalRow(signal)
    const { rows } = await this.commit({ step: this.step, rows: [own], lane: { ...lane, rowId: own.id } })
    const row = rows?.[0] ?? own
    this.trace?.laneChanged(lane.id, lane.mode, this.step)
    this.history.append([row])
    await this.publish(signalToDataChunk(rowToSignal(row), this.id))
    return [...sent, row]
  }

  #normalize(input: SignalInput): Signal {
    const now = new Date(this.clock.now())
    return normalizeSignal(input, { id: input.id ?? this.newId(), now, reservedTags: this.reservedTags })
  }

  #signalRow(signal: Signal): MessageRow {
    const row = signalToRow(signal, { threadId: this.threadId, resourceId: this.resourceId })
    return { ...row, content: this.history.withTaint(row.content), runId: this.id, step: this.step }
  }

  get hasOwnSignals(): boolean {
    return this.#ownSignals.length > 0
  }

  /** The signals of the run to itself that are not stored yet. The caller stores them. */
  takeOwnSignals(): MessageRow[] {
    const sent = this.#ownSignals
    this.#ownSignals = []
    return sent
  }

  /** Commits the signals of the run to itself, so that the model may read them. */
  async commitOwnSignals(): Promise<MessageRow[]> {
    const sent = this.takeOwnSignals()
    if (sent.length === 0) return sent
    await this.commit({ step: this.step, rows: sent })
    this.history.append(sent)
    return sent
  }

  /** Commits what the next prompt lacks: the signals of the run to itself, then the rows of the context sources. */
  async commitContext(): Promise<void> {
    const sent = this.takeOwnSignals()
    const { rows: context, quoted } = await this.#contextRows(sent)
    const rows = [...sent, ...context]
    if (rows.length === 0) return
    const stored = await this.commit({ step: this.step, rows, ...(quoted.length > 0 && { quoted }) })
    const ids = quoted.length > 0 && stored.rows ? new Set(stored.rows.map(({ id }) => id)) : undefined
    this.history.append(ids ? rows.filter(({ id }) => ids.has(id)) : rows)
  }

  async #contextRows(sent: readonly MessageRow[]): Promise<Required<Pick<RunCommit, 'rows' | 'quoted'>>> {
    const rows: MessageRow[] = []
    const quoted: Array<NonNullable<RunCommit['quoted']>[number]> = []
    for (const source of this.#contextSources) {
      const block = await this.#ofHost(source([...this.rows, ...sent, ...rows]))
      const text = block && (await this.checkedContext(block.text))
      if (!block || text === undefined) continue
      const row = this.contextRow(text, block.metadata)
      rows.push(row)
      for (const quote of block.quoted ?? []) quoted.push({ ...quote, rowId: row.id })
    }
    return { rows, quoted }
  }

  /**
   * The text of a context row as input processors leave it; undefined where one rejects it. The run continues without it: what was stored
   * earlier, perhaps by others, must not end every run that reads it.
   */
  async checkedContext(text: string): Promise<string | undefined> {
    if (!this.processors.readsInput) return text
    if (this.#rejectedContext.has(text)) return undefined
    try {
      return (await this.processors.texts(this, [text], 'context'))[0]
    } catch (error) {
      if (!(error instanceof TripwireAbort)) throw error
      this.#rejectedContext.add(text)
      const { processorId, reason } = error.tripwire
      this.logger.warn('a processor rejected what memory adds to the prompt: it is left out', { runId: this.id, processorId, reason })
      return undefined
    }
  }

  row(role: MessageRow['role'], id: string, messageId: string, parts: MessageRow['content']['parts']): MessageRow {
    const createdAt = new Date(this.clock.now())
    const content = this.history.withTaint<MessageRow['content']>({ format: 2, parts })
    const row: MessageRow = { id, messageId, role, createdAt, content, runId: this.id, step: this.step }
    if (this.threadId !== undefined) row.threadId = this.threadId
    if (this.resourceId !== undefined) row.resourceId = this.resourceId
    return row
  }

  contextRow(text: string, metadata?: JSONObject): MessageRow {
    const id = this.newId()
    const row = this.row('context', id, id, [{ type: 'text', text }])
    return metadata ? { ...row, content: { ...row.content, metadata: { ...row.content.metadata, ...metadata } } } : row
  }

  /** Sets the tools of this step, and returns their definitions for the model. Without `active`, all tools. */
  offerTools(active: readonly string[] | undefined): Array<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool> {
    if (!active) {
      this.offeredTools = this.tools.tools
      return [...this.tools.definitions]
    }
    const names = new Set(active)
    this.offeredTools = new Map([...this.tools.tools].filter(([name]) => names.has(name)))
    return this.tools.definitions.filter((tool) => names.has(tool.name))
  }
}

/** The errors of a host whose run continues elsewhere, or ends with its thread. */
const lossCodes: ReadonlySet<string> = new Set<HeedErrorCode>(['fenced', 'closed', 'thread_deleted'])

function isLoss(error: unknown): boolean {
  return isHeedError(error) && lossCodes.has(error.code)
}
