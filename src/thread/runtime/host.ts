import { runInTrace, traceRun, type RunTrace } from '../../tracing/run-trace.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Chunk } from '../../message/chunk.ts'
import { runLoop } from '../../run/loop/loop.ts'
import { noUsage } from '../../run/model/model-parts.ts'
import { chunkError } from '../../run/model/provider-error.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { Run } from '../../run/loop/run.ts'
import type { InputChange, RunCommit, RunCommitEnd, RunCommitted, RunHost } from '../../run/loop/run-contract.ts'
import { type RunResult, failedResult } from '../../run/output/run-result.ts'
import { rowToSignal, signalToDataChunk } from '../../signals/conversions.ts'
import type { BegunRun, Fence, MailboxRow, RunEnd, RunRow, StepCommit, StepCommitted } from '../../store/contract/threads.ts'
import { continuationOf, errorJSON, errorRow, errorRowId, refusalError } from './run-rows.ts'
import { followOn } from '../cluster/run-follower.ts'
import type { LiveThread } from '../watch/live.ts'
import type { LocalCall } from '../send/waiters.ts'
import type { ThreadRuntime } from './runtime.ts'
import type { TitlePlace } from './titles.ts'
import { foundOptions } from '../send/stored-options.ts'
import type { RunRequest, Titler } from './runnable.ts'
import { seqBefore, drainedRows, unreadInput, DrainedSignals } from './drained-signals.ts'

/** A run that was begun so often and never came to an end is not begun again. */
const maxAttempts = 10

export interface HostAbort {
  reason: unknown
  /** Also cancel what waits. */
  clearPending: boolean
  /** Only if the thread is of this resource. */
  resourceId?: string | undefined
  /** This run and no other; else the one that is at work or about to begin. */
  runId?: string | undefined
}

/** Runs one thread for as long as this process has its lease: run after run, until a commit finds nothing more to do. */
export class ThreadHost implements RunHost {
  readonly fence: Fence
  readonly live: LiveThread
  readonly #runtime: ThreadRuntime
  readonly #drained: DrainedSignals
  #run: Run | undefined
  #begun: BegunRun | undefined
  #callers: LocalCall[] = []
  /** Options that only this process has. */
  #here: AgentExecutionOptions | undefined
  /** Options of it that this process doesn't have, until that is stored. */
  #missing: string[] | undefined
  /** Ends the run that is being prepared or at work. */
  #stop: AbortController | undefined
  /** A run is on its way or at work. */
  #expecting = true
  /** Asked for before the run was there. */
  #abortNext: HostAbort | undefined
  readonly #interruptNext = new Set<string>()
  #clearPending = false
  #titler: Titler | undefined
  #suspended = false
  /** From the begin of a run until its callers know how it ended. */
  #working = false
  #entered = false
  /** Set when the lease may be another's. The store says whether it is when the thread is taken up again. */
  #lost: HeedError | undefined

  constructor(runtime: ThreadRuntime, fence: Fence, live: LiveThread) {
    this.#runtime = runtime
    this.#drained = new DrainedSignals(runtime)
    this.fence = fence
    this.live = live
  }

  get runId(): string | undefined {
    return this.#expecting ? this.#begun?.run.runId : undefined
  }

  /** The work on the thread has begun. */
  get entered(): boolean {
    return this.#entered
  }

  /** False once nothing more is to run here, also while the last word is still being said. */
  get expecting(): boolean {
    return this.#expecting
  }

  /** Goes on from what the store has begun already, if so. Resolves when the thread is released, handed over, or lost to another process. */
  async work(first?: BegunRun | null): Promise<void> {
    this.#entered = true
    this.live.begin(this.fence.epoch)
    try {
      for (let begun = first; this.#expecting; begun = undefined) {
        if (begun === undefined) begun = await this.#runtime.store.beginRun(this.fence, this.#runtime.windows)
        // What is left is for a process that has its agent.
        if (!begun) return this.#runtime.peers.mail(this.fence.threadId)
        await this.#perform(begun)
      }
    } finally {
      this.#expecting = false
    }
  }

  /** Aborts the run that is at work, or the one that is about to begin. False when there is none any more. */
  abort(abort: HostAbort): boolean {
    if (!this.#expecting) return false
    const other = abort.runId !== undefined && this.#begun !== undefined && this.#begun.run.runId !== abort.runId
    if (!this.#stop) {
      // The run that was begun last is over: only one that is to come can be meant.
      if (this.#begun !== undefined && abort.runId !== undefined && !other) return false
      this.#abortNext ??= abort
      return true
    }
    if (other || this.#stop.signal.aborted || this.live.foreignTo(abort.resourceId)) return false
    this.#clearPending = abort.clearPending
    this.#stop.abort(abort.reason)
    return true
  }

  /** Lets whoever follows the run that is at work here hear the rest of it. */
  join(runId: string): void {
    if (this.#working && this.#begun?.run.runId === runId) this.#callers.push(...this.#runtime.waiters.takeFollowers(runId))
  }

  /** The lease ran out before it was renewed: nothing more is said or written here. What has not begun asks the store first anyway. */
  lose(): void {
    if (this.#lost || !this.#entered) return
    this.#lost = new HeedError('fenced', `The lease of thread ${this.fence.threadId} ran out. It goes on here if nobody took it.`, { retryable: true })
    this.#stop?.abort(this.#lost)
  }

  /** Cuts the model's stream so that the signal that just arrived enters at once. */
  interrupt(signalId: string): void {
    if (this.#run) this.#run.interrupt()
    else this.#interruptNext.add(signalId)
  }

  async #perform(begun: BegunRun): Promise<void> {
    const { run, thread, taken, rows } = begun
    const { waiters } = this.#runtime
    this.#begun = begun
    const call = waiters.takeCall(thread.id, taken[0]?.id)
    this.#callers = [...(call ? [call] : []), ...waiters.takeFollowers(run.runId)]
    this.#here = call?.options ?? waiters.optionsOf(taken) ?? waiters.takeOptions(run.runId)
    this.#working = true
    this.#clearPending = false
    this.#suspended = false
    this.#stop = new AbortController()
    const release = abortWith(this.#stop, this.#here?.abortSignal)
    this.live.resourceId = thread.resourceId
    if (begun.resumed && run.attempts > 1) this.live.startOver()
    this.live.startRun(run.runId, seqBefore(rows, taken))
    this.live.committed(rows.at(-1)?.seq)
    this.#runtime.active.set(run.runId, { threadId: thread.id, resourceId: thread.resourceId })
    const guarded = this.#here?.inputProcessors !== undefined || (this.#runtime.knows(run.agentId) && this.#runtime.agent(run.agentId).canRefuse === true)
    if (guarded && begun.resumed) this.#drained.resume(unreadInput(rows, run.runId))
    this.#took(taken, 0, 'woke', guarded)
    const abort = this.#abortNext
    this.#abortNext = undefined
    if (abort) this.abort(abort)
    try {
      const { signal } = this.#stop
      const result = await tracedRun(this.#runtime, begun, this.#callers, (trace) => (run.attempts > maxAttempts ? this.#park(run) : this.#loop(begun, signal, trace)))
      for (const caller of this.#callers) caller.resolve(result)
    } catch (error) {
      this.#leaveCallers(run, error)
      throw error
    } finally {
      release()
      this.#over()
      this.#drained.forget()
      this.#working = false
      this.#callers = []
      this.#runtime.active.delete(run.runId)
      if (this.#suspended && this.#here) waiters.keepOptions(run.runId, this.#here)
      this.#here = undefined
      // A process that closes says nothing more in this epoch.
      this.live.endRun(this.#suspended, this.#expecting && !this.#runtime.closing)
    }
  }

  /** The run goes on from what is stored, here or elsewhere, and its callers with it; unless this process goes. */
  #leaveCallers({ runId, threadId, step }: RunRow, error: unknown): void {
    if (this.#here) this.#runtime.waiters.keepOptions(runId, this.#here)
    const callers = this.#callers
    // Whoever follows from here on follows what comes after this.
    this.#working = false
    this.#callers = []
    for (const caller of callers) {
      if (isHeedError(error) && error.code === 'closed') caller.reject(error)
      else followOn(this.#runtime, { threadId, runId, step }, caller)
    }
  }

  async #loop(begun: BegunRun, signal: AbortSignal, trace: RunRequest['trace']): Promise<RunResult> {
    const { run, thread, taken, rows } = begun
    let started: Run
    try {
      const { options, lost } = foundOptions(run.options, this.#here)
      this.#miss(run, lost)
      const setup = await this.#runtime.agent(run.agentId).prepare({ ...options, abortSignal: signal }, {
        runId: run.runId,
        threadId: thread.id,
        resourceId: thread.resourceId,
        fence: this.fence,
        rows,
        inputCount: drainedRows(taken).length,
        stepsDone: run.step,
        trace,
      }, this.#runtime.environment)
      this.#titler = setup.titler
      if (begun.resumed) await this.#findInterrupts((id) => this.#interruptNext.add(id))
      started = new Run(setup, this)
    } catch (error) {
      return signal.aborted ? this.#abortEarly(begun) : this.#failToStart(begun, error)
    }
    if (!started.processors.guardsInput) this.#drained.confirm()
    this.#run = started
    if (this.#interruptNext.size > 0) started.interrupt()
    this.#interruptNext.clear()
    const onAbort = () => started.abort(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    if (this.#runtime.closing) throw closed()
    const idempotent = (name: string) => started.tools.tools.get(name)?.tool.idempotent ?? false
    return runLoop(started, begun.resumed ? continuationOf(run, rows, idempotent) : undefined)
  }

  /** An interrupt that another process asked for and that was not heard here, or that the process before did not live to obey. */
  async #findInterrupts(found: (id: string) => void): Promise<void> {
    const waiting = await this.#runtime.store.listSignals({ threadId: this.fence.threadId }, { states: ['pending'] })
    for (const { id, route } of waiting) if (route === 'interrupt') found(id)
  }

  /** Obeys interrupts that wait in the store. */
  readonly obeyWaiting = (): Promise<void> => this.#findInterrupts((id) => this.interrupt(id))

  /** Options that went with an earlier process: told once, and kept with the run by its next commit. */
  #miss({ runId, lost: known }: RunRow, lost: string[]): void {
    this.#missing = undefined
    if (lost.length === 0 || known) return
    this.#missing = lost
    this.#runtime.logger.warn('a run goes on without options that only an earlier process had', { threadId: this.fence.threadId, runId, lost })
  }

  /** From here on, whoever wants to stop or interrupt means the run that comes next. */
  #over(): void {
    this.#run = undefined
    this.#stop = undefined
  }

  /** Aborted while it was being prepared. */
  async #abortEarly(begun: BegunRun): Promise<RunResult> {
    const { runId, step } = begun.run
    await this.commit({ step, rows: [], end: { status: 'aborted', usage: noUsage } })
    this.#sayInput(begun)
    this.emit({ type: 'abort', runId, from: 'AGENT', payload: {} })
    return { ...failedResult(runId, new Error('aborted')), error: undefined, finishReason: 'aborted' }
  }

  /** What the agent needs could not be found: the run is over before its first step, and everybody is told. */
  async #failToStart(begun: BegunRun, thrown: unknown): Promise<RunResult> {
    const { runId, step } = begun.run
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    await this.commit({ step, rows: [errorRow(runId, error, this.#runtime.clock.now())], end: { status: 'failed', usage: noUsage, error } })
    this.#sayInput(begun)
    this.emit({ type: 'error', runId, from: 'AGENT', payload: { error: chunkError(error) } })
    return failedResult(runId, error)
  }

  /** What a run took is in history and was to be seen, also when it said nothing itself. */
  #sayInput({ run: { runId, agentId }, taken, resumed }: BegunRun): void {
    if (resumed) return
    this.emit({ type: 'start', runId, from: 'AGENT', payload: { id: agentId, messageId: errorRowId(runId) } })
    for (const row of drainedRows(taken)) if (row.role === 'signal') this.emit(signalToDataChunk(rowToSignal(row), runId))
  }

  /** A run that takes its process down each time must not take down the next one. It stays visible as `parked`. */
  async #park({ runId, step, attempts }: RunRow): Promise<RunResult> {
    const error = new HeedError('run_parked', `Run ${runId} was begun ${attempts - 1} times and never came to an end. It is parked: agent.retryParked() takes it up again.`, { details: { runId, attempts } })
    this.#runtime.logger.error('a run is parked', { threadId: this.fence.threadId, runId, attempts })
    const { ended, more } = await this.#runtime.store.commitStep(this.fence, { runId, step, rows: [errorRow(runId, error, this.#runtime.clock.now())], end: { status: 'parked', error: errorJSON(error) } })
    if (ended) this.#expecting = more
    this.emit({ type: 'error', runId, from: 'AGENT', payload: { error: chunkError(error) } })
    return failedResult(runId, error)
  }

  emit(chunk: Chunk): void {
    // What is said after the end is stored: it stays true, whoever has the thread now.
    if (this.#stop && (this.#lost || this.#runtime.lapsed)) return this.lose()
    this.live.publish(chunk)
    for (const caller of this.#callers) caller.emit(chunk)
  }

  /** A process that slept since it was stored that the tool begins must not begin it beside whoever has the thread now. */
  beforeTool(): void {
    if (this.#stop && this.#runtime.lapsed) this.lose()
  }

  async commit(commit: RunCommit): Promise<RunCommitted> {
    if (this.#runtime.closing) throw closed()
    if (this.#lost) throw this.#lost
    const { run } = this.#begun as BegunRun
    const { end, ...rest } = commit
    const place = this.#titler && end?.status === 'finished' ? this.#runtime.titles.reserve() : undefined
    let committed: StepCommitted
    try {
      const step: StepCommit = Object.assign(rest, { runId: run.runId })
      if (this.#missing) step.lost = this.#missing
      if (end) step.end = this.#endOf(end, place)
      committed = await this.#runtime.store.commitStep(this.fence, step)
      this.#missing = undefined
    } catch (error) {
      // Whoever has the thread now writes and speaks for it. Nothing of this run may reach anybody any more.
      if (isHeedError(error) && error.code === 'fenced') this.#run?.abort(error)
      throw error
    } finally {
      place?.release()
    }
    const { taken, ended, more, left, rows, wantsTitle, waits = false, gone } = committed
    if (gone) for (const id of gone) this.#runtime.liveOf(id)?.withdraw()
    if (wantsTitle) this.#runtime.titles.start({ threadId: this.fence.threadId, agentId: run.agentId, attempts: 1 }, this.#titler)
    this.live.committed((drainedRows(taken).at(-1) ?? rows.at(-1))?.seq)
    this.#took(taken, commit.step + 1, 'delivered', this.#run?.processors.guardsInput ?? false)
    if (ended) {
      if (end?.status === 'rejected') this.#drained.refuse(end.tripwire)
      else this.#drained.confirm()
      if (this.#clearPending) {
        this.#runtime.waiters.dropOptions(this.fence.threadId)
        this.#runtime.peers.settled(this.fence.threadId)
      }
      if (left) this.#runtime.peers.mail(this.fence.threadId)
      this.#over()
      this.#expecting = more
      this.#suspended = end?.status === 'suspended'
    }
    return { entered: taken.map((mail) => mail.rows), ended, rows, waits }
  }

  async reviseInput({ revised, removed, added }: InputChange): Promise<void> {
    if (this.#runtime.closing) throw closed()
    if (this.#lost) throw this.#lost
    const { run } = this.#begun as BegunRun
    const { rows } = await this.#runtime.store.commitStep(this.fence, { runId: run.runId, step: this.#run?.step ?? run.step, rows: added, revised, removed })
    this.live.committed(rows.at(-1)?.seq)
  }

  get lanes(): BegunRun['lanes'] {
    return this.#begun?.lanes ?? []
  }

  readonly history: RunHost['history'] = async (query) => (await this.#runtime.store.listRows({ threadId: this.fence.threadId }, query)).rows

  async laneRows(id: string): Promise<{ rows: MessageRow[]; left: number }> {
    const lane = await this.#runtime.store.readLane({ threadId: this.fence.threadId }, id, { placed: true })
    return { rows: lane?.signals.map(({ row }) => row) ?? [], left: lane?.left ?? 0 }
  }

  #took(taken: readonly MailboxRow[], step: number, action: 'woke' | 'delivered', hold: boolean): void {
    for (const { id } of taken) this.#interruptNext.delete(id)
    if (taken.length > 0) this.#drained.take(taken, { action, step }, hold)
  }

  /** Whether processors are still at what this signal says. */
  withholds(signalId: string): boolean {
    return this.#drained.isUnconfirmed(signalId)
  }

  withdraw(): void {
    this.live.withdraw()
  }

  beforeModelCall(): void {
    this.#drained.confirm()
  }

  #endOf(end: RunCommitEnd, place: TitlePlace | undefined): RunEnd {
    if (end.status === 'suspended') return { status: 'suspended', calls: end.calls, usage: { ...end.usage } }
    if (end.status === 'rejected') return { status: 'rejected', error: refusalError(end.tripwire, this.#drained.unread) }
    const ended: RunEnd = { status: end.status, usage: { ...end.usage } }
    if (end.error) ended.error = errorJSON(end.error)
    if (this.#clearPending) ended.clearPending = true
    if (place) ended.titleUntil = place.until
    return ended
  }
}

function closed(): HeedError {
  return new HeedError('closed', 'This Heed was closed. The thread goes on in the next process that opens it.')
}

/** Aborts `stop` when the caller's signal aborts; returns a function that removes the listener. */
function abortWith(stop: AbortController, signal: AbortSignal | undefined): () => void {
  if (!signal) return () => {}
  const onAbort = () => stop.abort(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}

/** Runs `work` in a span: a child of the caller's span where a caller waits, else a root span with links to the signals that woke it. */
function tracedRun(
  runtime: ThreadRuntime, { run, thread, taken, resumed }: BegunRun, callers: readonly LocalCall[], work: (trace: RunTrace | undefined) => Promise<RunResult>,
): Promise<RunResult> {
  const trace = traceRun(runtime.tracing, () => ({
    agent: { id: run.agentId, name: runtime.knows(run.agentId) ? runtime.agent(run.agentId).name : run.agentId },
    runId: run.runId,
    threadId: thread.id,
    resourceId: thread.resourceId,
    parent: callers.find(({ from }) => from)?.from,
    drained: drainedRows(taken),
    ...(resumed ? { resumed: { attempt: run.attempts } } : {}),
  }))
  return runInTrace(trace, () => work(trace))
}
