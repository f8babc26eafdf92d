import type { LanguageModelV4FunctionTool, LanguageModelV4Message, LanguageModelV4ProviderTool } from '@ai-sdk/provider'
import type { Clock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { ToolInvocation } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { ProcessorPipeline } from '../../processors/pipeline.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import { createdSignal } from '../../signals/created.ts'
import { signalToDataChunk } from '../../signals/echo.ts'
import { normaliseSignal } from '../../signals/normalise.ts'
import { signalToRow } from '../../signals/row.ts'
import type { CreatedAgentSignal, Signal, SignalInput } from '../../signals/signal.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import type { StepEnd } from './boundary.ts'
import { BrokenStreams } from '../step/broken-streams.ts'
import { tellCallback, type CallbackEvent, type CallbackName } from './callbacks.ts'
import type { Chunk, ChunkPayloads, RunChunk, Usage } from '../chunk.ts'
import type { ContextSource } from './context-source.ts'
import { GrowingPrompt } from './growing-prompt.ts'
import type { ResolvedModel } from '../model/model.ts'
import { noUsage } from '../model/model-parts.ts'
import { OpenMessage } from '../step/open-message.ts'
import { defaultMaxSteps, type AgentExecutionOptions } from '../options.ts'
import type { RequestContext } from '../request-context.ts'
import { InTurn } from './in-turn.ts'
import { inputChange, withInput } from './input-change.ts'
import { keepState } from './run-signals.ts'
import type { RunCommit, RunCommitted, RunHost } from './run-host.ts'
import type { RunSetup } from './run-setup.ts'
import { stepResult } from '../step/outcome.ts'
import type { SegmentChange } from './segment.ts'
import type { Shown } from '../step/step-recorder.ts'
import type { StepResult } from '../step/step-result.ts'
import type { StructuredOutput } from '../output/structured-output.ts'
import { showToolCall, showToolResult } from '../tools/tool-display.ts'
import type { ResolvedTool, ToolSet } from '../tools/tool-set.ts'
import type { Transformer } from '../tools/transform.ts'
import { isPromise } from '../../base/is-promise.ts'
import { untilAborted } from '../../base/until-aborted.ts'

/** A run at work: its rows, its growing prompt, and how it speaks to watchers. */
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
  readonly transformer: Transformer
  readonly clock: Clock
  readonly logger: Logger
  readonly newId: () => string
  readonly host: RunHost
  /** Absent unless somebody traces. */
  readonly trace: RunTrace | undefined
  readonly stepsDone: number

  system: SystemMessage[]
  /** The tools the model was offered in this step. */
  offered: ReadonlyMap<string, ResolvedTool>
  readonly tools: ToolSet
  readonly steps: StepResult[] = []
  usage: Usage = noUsage
  readonly message: OpenMessage
  /** The run is stored as over: nothing can be added to it. */
  over = false
  /** Whether what the window lost or mixed up of lanes was told again. */
  lanesRepeated = false
  /** How often processors had the model asked again. */
  retries = 0
  /** Whether the model was told that its answer has the wrong shape. It is told once. */
  repaired = false
  readonly broken = new BrokenStreams()
  /** The step at which processors that look at what was said failed to: none of it may stay. */
  unchecked: StepEnd | undefined
  /** The first step of the last answer, and that of the answer which comes. */
  #answered = 0
  #answering = 0

  /** Tags of the agent's own that signals may have. */
  readonly reservedTags: readonly string[]
  readonly rows: MessageRow[]
  readonly #inputCount: number
  readonly #prompt: GrowingPrompt
  readonly #context: readonly ContextSource[]
  /** Chunks that processors see go one after the other: an order that depends on how long each takes is none. */
  readonly #turns = new InTurn()
  #sent: MessageRow[] = []
  /** Made when somebody asks for its signal. */
  #stop: AbortController | undefined
  #cut: AbortController | undefined
  #cutNext = false
  #lost: unknown = Symbol('nothing')

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
    this.offered = setup.tools.tools
    this.structured = setup.structured
    this.processors = setup.processors
    this.transformer = setup.transformer
    this.clock = setup.clock
    this.logger = setup.logger
    this.newId = setup.newId
    this.rows = setup.rows
    this.#inputCount = setup.inputCount
    this.stepsDone = setup.stepsDone
    this.reservedTags = setup.reservedTags
    this.host = host
    this.trace = setup.trace
    this.message = new OpenMessage(setup.newId)
    this.#prompt = new GrowingPrompt(setup.rows, setup.reservedTags)
    this.#context = setup.context
  }

  /** Aborts with the run. */
  get signal(): AbortSignal {
    this.#stop ??= new AbortController()
    return this.#stop.signal
  }

  /** The message that the run is writing. */
  get messageId(): string {
    return this.message.id
  }

  get step(): number {
    return this.stepsDone + this.steps.length
  }

  /** This step is the last one that the options allow. */
  get atLimit(): boolean {
    return this.step + 1 >= (this.options.maxSteps ?? defaultMaxSteps)
  }

  /** What started the run. */
  get input(): MessageRow[] {
    return this.rows.slice(this.rows.length - this.#inputCount)
  }

  /** Counts a step that is stored. */
  count(step: StepResult, broken: boolean): void {
    this.steps.push(step)
    this.#answered = this.#answering
    if (!broken) this.#answering = this.steps.length
  }

  /** The answer so far: of the last step, with the steps before it whose stream broke. */
  get text(): string {
    return this.#textFrom(this.#answered)
  }

  /** What steps said whose stream broke and that the present step goes on from. */
  get unfinished(): string {
    return this.#textFrom(this.#answering)
  }

  #textFrom(index: number): string {
    let text = ''
    for (let at = index; at < this.steps.length; at++) text += this.steps[at]?.text ?? ''
    return text
  }

  commit(commit: RunCommit): Promise<RunCommitted> {
    return this.#stored(this.host.commit(commit))
  }

  /**
   * True for the error with which the host refused this run, or could not store it: the thread is another's, will be, or is taken up
   * again from what is stored. The same code thrown by others' code says nothing.
   */
  isLost(error: unknown): boolean {
    return error === this.#lost || (isLoss(error) && this.signal.aborted && error === this.signal.reason)
  }

  async #stored<T>(stored: Promise<T>): Promise<T> {
    try {
      return await stored
    } catch (error) {
      this.#lost = error
      throw error
    }
  }

  resultOf(step: StepEnd): StepResult {
    return stepResult(this.step, step)
  }

  /** Lets processors see rows before the model does, and keeps what they made of them. `outside`: the window doesn't have them. */
  async admit(rows: readonly MessageRow[], outside = false): Promise<void> {
    const known = this.processors.input(this, rows, outside)
    const changed = isPromise(known) ? await known : known
    if (!changed) return
    const change = inputChange(rows, changed)
    this.rows.splice(0, this.rows.length, ...withInput(this.rows, rows, change))
    this.#prompt.rebuild(this.rows)
    await this.#stored(this.host.revise(change))
  }

  /** Tells a caller's callback. What it does wrong is logged and is not the run's failure. */
  notify<Name extends CallbackName>(name: Name, event: CallbackEvent<Name>): void {
    if (this.options[name]) tellCallback(this, name, event)
  }

  abort(reason: unknown): void {
    this.#stop ??= new AbortController()
    this.#stop.abort(reason)
    this.#cut?.abort(this.#stop.signal.reason)
  }

  /** Waits for what a caller's code does, but not beyond an abort of the run. */
  unlessAborted<T>(work: T | PromiseLike<T>): T | Promise<T> {
    return isPromise(work) ? untilAborted(work, this.signal) : work
  }

  /** Cuts the model's stream: what was said is kept and new input enters. Between two streams, the next one, unless it entered before. */
  interrupt(): void {
    if (this.#cut) this.#cut.abort(interrupted)
    else this.#cutNext = true
  }

  /** The signal of one model stream: it ends with the run, or when input interrupts. */
  openStep(): AbortSignal {
    this.#cut = new AbortController()
    if (this.#stop?.signal.aborted) this.#cut.abort(this.#stop.signal.reason)
    if (this.#cutNext) this.#cut.abort(interrupted)
    this.#cutNext = false
    return this.#cut.signal
  }

  /** Input entered: whatever wanted to interrupt for it has got its way. */
  settleInterrupt(): void {
    this.#cutNext = false
  }

  closeStep(): void {
    this.#cut = undefined
  }

  /** A copy: a provider may keep what it is given. */
  prompt(system: readonly SystemMessage[] = this.system): LanguageModelV4Message[] {
    return [...system, ...this.#prompt.next()] as LanguageModelV4Message[]
  }

  /** What the model was sent; see `GrowingPrompt.sent`. */
  sentMessages(answering = false): () => LanguageModelV4Message[] {
    return this.#prompt.sent(answering)
  }

  /** Rows that have a place in history now. The prompt grows by them and never changes before them. */
  append(rows: readonly MessageRow[]): void {
    for (const row of rows) this.rows.push(row)
    // Results that come after something else are shown before it.
    if (this.message.sealed && rows.some((row) => row.role === 'tool')) this.#prompt.rebuild(this.rows)
    else this.#prompt.append(rows)
    this.message.follow(rows)
  }

  /** Rows that are stored and that processors changed or took out. */
  revise({ revised, removed }: SegmentChange): void {
    if (revised.length + removed.length === 0) return
    const changed = new Map(revised.map((row) => [row.id, row]))
    const gone = new Set(removed)
    this.rows.splice(0, this.rows.length, ...this.rows.filter(({ id }) => !gone.has(id)).map((row) => changed.get(row.id) ?? row))
    this.#prompt.rebuild(this.rows)
  }

  /** Makes the next prompt of other rows than history's. The one after it is history's again. */
  showOnce(rows: readonly MessageRow[]): void {
    this.#prompt.showOnce(rows)
  }

  /** Shows a chunk, and answers what was shown in its place. A promise only where a processor that takes its time has to see it first. */
  say(chunk: Chunk): Shown | Promise<Shown> {
    if (!this.processors.watchesStream) {
      this.tell(chunk)
      return chunk
    }
    return this.#turns.do(() => this.#pass(chunk))
  }

  #pass(chunk: Chunk): Shown | Promise<Shown> {
    const told = (shown: Chunk[]) => {
      for (const part of shown) this.tell(part)
      return shown
    }
    const passed = this.processors.outputStream(this, chunk)
    return isPromise(passed) ? passed.then(told) : told(passed)
  }

  /** Shows a chunk that no processor may hold back: how the run ended. */
  tell(chunk: Chunk): void {
    this.host.emit(chunk)
    if (this.options.onChunk) this.notify('onChunk', chunk)
  }

  chunk<Type extends keyof ChunkPayloads>(type: Type, payload: ChunkPayloads[Type], from: RunChunk['from'] = 'AGENT'): RunChunk {
    return { type, runId: this.id, from, payload } as RunChunk
  }

  /**
   * Context that this run adds to itself. It is stored with the step that comes next. `unseen`: no processor sees its echo, as when
   * one sends it while it looks at a chunk.
   */
  async sendSignal(input: SignalInput, unseen = false): Promise<CreatedAgentSignal> {
    if (this.over) throw new HeedError('no_active_run', `Run ${this.id} is over: a signal can't enter it any more.`, { details: { runId: this.id } })
    const signal = this.#normalised(input)
    this.#sent.push(this.rowOf(signal))
    const echo = signalToDataChunk(signal, this.id)
    if (unseen) this.tell(echo)
    else await this.say(echo)
    return createdSignal(signal)
  }

  /** The state of a lane, stored before it is shown. Answers the rows that history gained by it. */
  sendState(input: SignalInput, lane: { id: string; cacheKey: string; mode: 'snapshot' | 'delta' }): Promise<MessageRow[]> {
    return keepState(this, this.#normalised(input), lane)
  }

  rowOf(signal: Signal): MessageRow {
    return { ...signalToRow(signal, { threadId: this.threadId, resourceId: this.resourceId }), runId: this.id, step: this.step }
  }

  #normalised(input: SignalInput): Signal {
    return normaliseSignal(input, { id: input.id ?? this.newId(), now: new Date(this.clock.now()), reservedTags: this.reservedTags })
  }

  /** Signals that this run sent to itself and that have no place in history yet. */
  takeSent(): MessageRow[] {
    const sent = this.#sent
    this.#sent = []
    return sent
  }

  row(role: MessageRow['role'], id: string, messageId: string, parts: MessageRow['content']['parts']): MessageRow {
    const row: MessageRow = { id, messageId, role, createdAt: new Date(this.clock.now()), content: { format: 2, parts }, runId: this.id, step: this.step }
    if (this.threadId !== undefined) row.threadId = this.threadId
    if (this.resourceId !== undefined) row.resourceId = this.resourceId
    return row
  }

  /** Something the model is told outside of the conversation: why it is asked again, or that its stream broke. */
  contextRow(text: string, metadata?: JSONObject): MessageRow {
    const id = this.newId()
    const row = this.row('context', id, id, [{ type: 'text', text }])
    return metadata ? { ...row, content: { ...row.content, metadata } } : row
  }

  /** What the model has to be told before its next call besides `coming`, which is on its way into history. */
  async contextRows(coming: readonly MessageRow[]): Promise<Required<Pick<RunCommit, 'rows' | 'quoted'>>> {
    const found: MessageRow[] = []
    const quoted: Array<NonNullable<RunCommit['quoted']>[number]> = []
    for (const source of this.#context) {
      const block = await this.#stored(source([...this.rows, ...coming, ...found]))
      if (!block) continue
      const row = this.contextRow(block.text, block.metadata)
      found.push(row)
      for (const quote of block.quoted ?? []) quoted.push({ ...quote, rowId: row.id })
    }
    return { rows: found, quoted }
  }

  /** The tools of this step as the model is told them. */
  definitions(active: readonly string[] | undefined): Array<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool> {
    if (!active) {
      this.offered = this.tools.tools
      return [...this.tools.definitions]
    }
    const names = new Set(active)
    this.offered = new Map([...this.tools.tools].filter(([name]) => names.has(name)))
    return this.tools.definitions.filter((tool) => names.has(tool.name))
  }

  showToolCall(chunk: Chunk): Shown | Promise<Shown> {
    return showToolCall(this, chunk)
  }

  showToolResult(invocation: ToolInvocation, preliminary = false): Promise<ToolInvocation> {
    return showToolResult(this, invocation, preliminary)
  }
}

function isLoss(error: unknown): boolean {
  return isHeedError(error) && (error.code === 'fenced' || error.code === 'closed')
}

/** The reason with which a step's stream is cut by new input. */
export const interrupted = Symbol('interrupted')
