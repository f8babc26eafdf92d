import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { ChildCall, Chunk } from '../../message/chunk.ts'
import { runLoop } from '../../run/loop/loop.ts'
import { chunkError } from '../../run/model/provider-error.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { Run } from '../../run/loop/run.ts'
import type { InputChange, RunCommit, RunCommitted, RunHost } from '../../run/loop/run-contract.ts'
import { type RunResult, failedResult } from '../../run/output/run-result.ts'
import type { BegunRun, Fence, MailboxRow, RunRow, StepCommit, StepCommitted } from '../../store/contract/threads.ts'
import { linkAbort } from '../../base/promises.ts'
import { abortEarly, failToStart } from './early-abort.ts'
import { announceEnded, closed, threadDeleted } from './ended-threads.ts'
import { maxHeldBack, whileFull } from './process-lease.ts'
import {
  continuationOf, errorJSON, errorRow, parked, reportFailure, runEnd, tracedRun, withdrawBegun, workCommit, workResult,
} from './run-rows.ts'
import { followToEnd } from '../cluster/run-follower.ts'
import type { LiveThread } from '../stream/live.ts'
import { abortThread, cancelPending } from '../control/abort.ts'
import type { LocalCall } from '../send/waiters.ts'
import type { RunTurn } from './run-slots.ts'
import type { ThreadRuntime } from './runtime.ts'
import { restoreOptions } from '../send/stored-options.ts'
import type { HostAbort, PreparedRun, RunRequest } from './runnable.ts'
import { seqBefore, drainedRows, unreadInput, DrainedSignals } from './drained-signals.ts'

/** A run that was begun so often without ending is parked. */
const maxAttempts = 10

/** Runs one thread while this process has its lease: run after run, until a commit finds no further work. */
export class ThreadHost implements RunHost {
  readonly fence: Fence
  readonly live: LiveThread
  readonly #runtime: ThreadRuntime
  readonly #turn: RunTurn
  readonly #drained: DrainedSignals
  #run: Run | undefined
  #begun: BegunRun | undefined
  #callers: LocalCall[] = []
  /** Options that only this process has. */
  #localOptions: AgentExecutionOptions | undefined
  /** The names of lost options, until they are stored with the run. */
  #lostOptions: string[] | undefined
  /** Aborts the run that is being prepared or active. */
  #stop: AbortController | undefined
  /** A run is active or about to begin. */
  #hasWork = true
  /** Aborts that arrived before the run began: one of them may be of another run, or the only one that cancels what is pending. */
  #abortNext: HostAbort[] = []
  readonly #interruptNext = new Set<string>()
  /** Of work that is no run of a model. */
  #onInterrupt: (() => void) | undefined
  /** Pending signals are cancelled with the end of the run; those with an `ord` up to this, before the next run begins. */
  #clearUpTo: number | undefined
  #runEnded = Promise.withResolvers<void>()
  #afterRun: Pick<PreparedRun, 'titler' | 'scores'> = { titler: undefined }
  #suspended = false
  /** From the start of a run until its callers have its result. */
  #performing = false
  #started = false
  /** The thread was deleted or replaced. */
  #ended = false
  /** Set when another process has the lease, the store failed, or the thread was deleted. */
  #leaseLost: HeedError | undefined
  /** The chunks since the lease expired, until the store confirms it. */
  #heldBack: Chunk[] | undefined

  constructor(runtime: ThreadRuntime, fence: Fence, live: LiveThread, turn: RunTurn) {
    this.#runtime = runtime
    this.#turn = turn
    this.#drained = new DrainedSignals(runtime)
    this.fence = fence
    this.live = live
  }

  get runId(): string | undefined {
    return this.#hasWork ? this.#begun?.run.runId : undefined
  }

  /** `work()` has begun. */
  get started(): boolean {
    return this.#started
  }

  /** False when no further run begins here, also while the last chunks are being published. */
  get hasWork(): boolean {
    return this.#hasWork
  }

  /**
   * Begins with the run that the store has begun already, if any. Resolves when the thread is released, handed over, or lost to another
   * process.
   */
  async work(first?: BegunRun | null): Promise<void> {
    this.#started = true
    if (this.fence.epoch < this.live.life) this.end(threadDeleted(this.fence.threadId))
    if (this.#ended) this.#checkLease()
    this.live.beginEpoch(this.fence.epoch)
    try {
      for (let begun = first; this.#hasWork; begun = undefined) {
        // The next process begins it.
        if (begun === undefined && this.#runtime.draining) return
        if (begun === undefined) begun = await this.#runtime.store.beginRun(this.fence, this.#runtime.windows)
        // A process that has the agent of the pending signals must run the thread.
        if (!begun) return this.#runtime.peers.requestRunner(this.fence.threadId)
        if (this.#ended) this.#checkLease()
        await this.#perform(begun)
        while (this.#clearUpTo !== undefined) await this.#cancelPending()
        this.#runEnded.resolve()
        this.#runEnded = Promise.withResolvers()
        if (this.#hasWork) await this.#turn.pass()
      }
    } finally {
      this.#hasWork = false
      this.#runEnded.resolve()
    }
  }

  /** An abort arrived when the commit that ended the run was under way. */
  async #cancelPending(): Promise<void> {
    const [{ threadId, epoch }, upTo] = [this.fence, this.#clearUpTo]
    this.#clearUpTo = undefined
    await cancelPending(this.#runtime, { threadId }, { epoch }, upTo)
  }

  #announceCleared(): void {
    this.#runtime.waiters.dropOptions(this.fence.threadId)
    this.#runtime.peers.announceOutcomes(this.fence.threadId)
  }

  /**
   * Aborts the run that is active or about to begin. False when there is none. The run may still end by itself: its stored status shows
   * that. Pending signals are cancelled either way, before the next run begins.
   */
  abort(abort: HostAbort): boolean {
    if (!this.#hasWork) return false
    const other = abort.runId !== undefined && this.#begun !== undefined && this.#begun.run.runId !== abort.runId
    if (!this.#stop) {
      if (this.#begun !== undefined && abort.runId !== undefined && !other) {
        // The end of the run is stored, and its last chunks are being published.
        if (abort.clearPending) this.#clearUpTo = Math.max(this.#clearUpTo ?? 0, abort.clearUpTo ?? Infinity)
        return false
      }
      if (!this.#abortNext.some((known) => isSameAbort(known, abort))) this.#abortNext.push(abort)
      return true
    }
    if (other || this.live.belongsToOther(abort.resourceId)) return false
    if (abort.clearPending) this.#clearUpTo = Math.max(this.#clearUpTo ?? 0, abort.clearUpTo ?? Infinity)
    if (!this.#stop.signal.aborted) this.#stop.abort(abort.reason)
    return true
  }

  /** Resolves when the run that is active or about to begin has ended here, or the host has failed. */
  get runEnded(): Promise<void> {
    return this.#runEnded.promise
  }

  /** Attaches the followers of the active run: they receive the chunks that follow. */
  attachFollowers(runId: string): void {
    if (this.#performing && this.#begun?.run.runId === runId) this.#callers.push(...this.#runtime.waiters.takeFollowers(runId))
  }

  /**
   * This host publishes and writes nothing more: another process has the thread, or `failure` prevents that the store is asked. After a
   * failure the thread is claimed again. A host that has not begun asks the store first.
   */
  loseLease(failure?: unknown): void {
    if (this.#leaseLost || !this.#started) return
    const why = failure ? `is not confirmed: ${describe(failure)}` : 'expired, and another process has claimed it.'
    this.#leaseLost = new HeedError('fenced', `The lease of thread ${this.fence.threadId} ${why}`, {
      retryable: failure !== undefined, cause: failure,
    })
    this.#heldBack = undefined
    this.#stop?.abort(this.#leaseLost)
  }

  /** The store has confirmed the lease, which had expired: publishes the chunks that were held back. */
  confirmLease(): void {
    const chunks = this.#heldBack ?? []
    this.#heldBack = undefined
    for (const chunk of chunks) this.#publish(chunk)
  }

  /** The thread was deleted, replaced or claimed: this host publishes and writes nothing more, and its callers get what the store has. */
  end(reason: HeedError): void {
    if (this.#ended) return
    this.#ended = true
    this.#leaseLost = reason
    this.#hasWork = false
    this.#drained.forget()
    this.#runEnded.resolve()
    if (this.#performing && this.#begun) this.#handOverCallers(this.#begun.run, this.#leaseLost)
    this.#stop?.abort(this.#leaseLost)
  }

  /** Aborts the model's stream so that the new signal enters at once. */
  interrupt(signalId: string): void {
    if (this.#run) this.#run.interrupt()
    else if (this.#onInterrupt) this.#onInterrupt()
    else this.#interruptNext.add(signalId)
  }

  async #perform(begun: BegunRun): Promise<void> {
    const { run, thread, taken, rows } = begun
    const { waiters } = this.#runtime
    this.#begun = begun
    const call = waiters.takeCall(thread.id, taken[0]?.id)
    this.#callers = [...(call ? [call] : []), ...waiters.takeFollowers(run.runId)]
    this.#localOptions = call?.options ?? waiters.optionsOf(taken) ?? waiters.takeRetainedOptions(run.runId)
    this.#performing = true
    this.#afterRun = { titler: undefined }
    this.#suspended = false
    this.#stop = new AbortController()
    const release = linkAbort(this.#stop, this.#localOptions?.abortSignal)
    this.live.resourceId = thread.resourceId
    if (begun.resumed && run.attempts > 1) this.live.startOver()
    this.live.startRun(run.runId, seqBefore(rows, taken))
    this.live.committed(rows.at(-1)?.seq)
    this.#runtime.addActive(run)
    const mayReject =
      this.#localOptions?.inputProcessors !== undefined ||
      (this.#runtime.hasAgent(run.agentId) && this.#runtime.agent(run.agentId).canRejectInput === true)
    if (mayReject && begun.resumed) this.#drained.resume(unreadInput(rows, run.runId))
    this.#recordDrained(taken, 0, mayReject)
    for (const abort of this.#abortNext.splice(0)) this.abort(abort)
    try {
      if (this.#leaseLost) throw this.#leaseLost // The store failed while it began the run.
      const { signal } = this.#stop
      const work = (trace: RunRequest['trace']) => (run.attempts > maxAttempts ? this.#park(begun) : this.#loop(begun, signal, trace))
      const result = await tracedRun(this.#runtime, begun, this.#callers, work)
      if (result.error && this.#callers.length === 0) reportFailure(this.#runtime.logger, run, result.error)
      for (const caller of this.#callers) caller.resolve(result)
    } catch (error) {
      this.#handOverCallers(run, error)
      throw error
    } finally {
      release()
      this.#clearRun()
      this.#drained.forget()
      this.#heldBack = undefined
      this.#performing = false
      this.#callers = []
      this.#runtime.activeRuns.delete(run.runId)
      if (this.#suspended && this.#localOptions) waiters.retainOptions(run.runId, this.#localOptions)
      this.#localOptions = undefined
      // A closing process publishes no further run in this epoch.
      if (!this.#ended) this.live.endRun(this.#suspended, this.#hasWork && !this.#runtime.draining)
    }
  }

  /** The run continues from its stored rows, in this process or in another, and its callers follow it; unless this process closes. */
  #handOverCallers({ runId, threadId, step }: RunRow, error: unknown): void {
    if (this.#localOptions) this.#runtime.waiters.retainOptions(runId, this.#localOptions)
    const callers = this.#callers
    // Callers that attach after this point are handed to the next run.
    this.#performing = false
    this.#callers = []
    for (const caller of callers) {
      if (isHeedError(error) && error.code === 'closed') caller.reject(error)
      else followToEnd(this.#runtime, { threadId, runId, step }, caller)
    }
  }

  async #loop(begun: BegunRun, signal: AbortSignal, trace: RunRequest['trace']): Promise<RunResult> {
    const { run, thread, taken, rows } = begun
    if (this.#runtime.hasAgent(run.agentId) && this.#runtime.agent(run.agentId).perform) return this.#work(begun, signal, trace)
    let started: Run
    try {
      const { options, lost } = restoreOptions(run.options, this.#localOptions)
      this.#reportLostOptions(run, lost)
      const setup = await this.#runtime.agent(run.agentId).prepare(
        { ...options, abortSignal: signal },
        {
          runId: run.runId,
          threadId: thread.id,
          resourceId: thread.resourceId,
          fence: this.fence,
          rows,
          inputCount: drainedRows(taken).length,
          stepsDone: run.step,
          lost,
          edit: run.edit,
          trace,
        },
        this.#runtime.environment,
      )
      this.#afterRun = setup
      if (begun.resumed) await this.#findInterrupts((id) => this.#interruptNext.add(id))
      started = new Run(setup, this)
    } catch (error) {
      return signal.aborted ? abortEarly(this, this.#runtime, begun) : failToStart(this, this.#runtime, begun, error)
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

  /** Work that plans itself, in place of a run of a model. */
  async #work(begun: BegunRun, signal: AbortSignal, trace: RunRequest['trace']): Promise<RunResult> {
    const { store } = this.#runtime
    await this.#runtime.agent(begun.run.agentId).perform?.({
      begun, store, signal, trace, isDraining: () => this.#runtime.draining, emit: (chunk) => this.emit(chunk),
      commit: ({ step, end, workflow }) => this.commit(workCommit(step, end, workflow)),
      onInterrupt: (listener) => (this.#onInterrupt = listener),
    })
    return workResult(begun.run.runId)
  }

  /** Finds interrupts whose message was lost, or that the previous process did not apply before it ended. */
  async #findInterrupts(found: (id: string) => void): Promise<void> {
    const waiting = await this.#runtime.store.listSignals({ threadId: this.fence.threadId }, { states: ['pending'] })
    for (const { id, route } of waiting) if (route === 'interrupt') found(id)
  }

  /** Applies the interrupts that are pending in the store. */
  readonly applyPendingInterrupts = (): Promise<void> => this.#findInterrupts((id) => this.interrupt(id))

  /** Reports options that were lost with an earlier process, once; the next commit stores their names with the run. */
  #reportLostOptions({ threadId, runId, lost: known }: RunRow, lost: string[]): void {
    this.#lostOptions = undefined
    if (lost.length === 0 || known) return
    this.#lostOptions = lost
    this.#runtime.logger.warn('a run continues without options that only an earlier process had', { threadId, runId, lost })
  }

  /** From here on, aborts and interrupts apply to the next run. */
  #clearRun(): void {
    this.#run = undefined
    this.#onInterrupt = undefined
    this.#stop = undefined
  }

  /** A run that crashes its process each time must not crash further processes. It stays visible as `parked`. */
  async #park(begun: BegunRun): Promise<RunResult> {
    const [{ runId, step, attempts, agentId }, failure] = [begun.run, this.#runtime.lastFailure(this.fence.threadId)]
    const cause = failure === undefined ? 'its processes ended before it did' : describe(failure)
    const error = parked(runId, attempts, cause, failure)
    this.#runtime.logger.error('a run is parked', { threadId: this.fence.threadId, runId, attempts, cause })
    const agent = this.#runtime.hasAgent(agentId) && this.#runtime.agent(agentId)
    const work = agent ? await agent.parked?.(begun, this.#runtime.store, error) : undefined
    const { ended, more } = await this.#runtime.store.commitStep(this.fence, {
      runId, step, rows: [errorRow(runId, error, this.#runtime.clock.now())], end: { status: 'parked', error: errorJSON(error) },
      ...(work && { workflow: work.workflow }),
    })
    if (ended) this.#hasWork = more
    if (work) this.emit(work.chunk)
    this.emit({ type: 'error', runId, from: 'AGENT', payload: { error: chunkError(error) } })
    return failedResult(runId, error)
  }

  emit(chunk: Chunk): void {
    if (this.#ended) return
    // Chunks after the stored end of a run stay valid when another process has the thread.
    if (this.#stop) {
      if (this.#leaseLost) return
      if (this.#heldBack || this.#runtime.lease.expired) return this.#holdBack(chunk)
    }
    this.#publish(chunk)
  }

  #publish(chunk: Chunk): void {
    this.live.publish(chunk)
    for (const caller of this.#callers) caller.emit(chunk)
  }

  /** Publishes the chunk when the store has confirmed the lease, or a commit has. With too many of them the thread is claimed again. */
  #holdBack(chunk: Chunk): void {
    this.#heldBack ??= []
    if (this.#heldBack.length === maxHeldBack) return this.loseLease(new HeedError('store_failed', 'The store does not answer.'))
    if (this.#heldBack.push(chunk) === 1) void this.#runtime.lease.beat()
  }

  /** A process that was paused after it stored the start of the tool must not execute it beside the next owner. */
  beforeTool(): Promise<void> | undefined {
    if (!this.#stop || !this.#runtime.lease.expired) return undefined
    return this.#runtime.lease.renew().catch((error: unknown) => this.loseLease(error))
  }

  withdrawBegun(step: number, notStarted: string[]): Promise<void> {
    return withdrawBegun(this.#runtime, this.fence, { runId: this.#begun?.run.runId ?? '', step, rows: [], notStarted })
  }

  abortChild({ threadId, runId }: Pick<ChildCall, 'threadId' | 'runId'>): void {
    abortThread(this.#runtime, { threadId }, { expectedRunId: runId })
  }

  async commit(commit: RunCommit & Pick<StepCommit, 'workflow'>): Promise<RunCommitted & Pick<StepCommitted, 'taken'>> {
    const renewed = this.#renewed()
    if (renewed) await renewed
    const { run } = this.#begun as BegunRun
    const { end, call, ...rest } = commit
    const { titler, scores } = this.#afterRun
    const titleSlot = titler && end?.status === 'finished' ? this.#runtime.titles.reserve(this.fence.threadId, titler) : undefined
    let committed: StepCommitted
    const cleared = end !== undefined && this.#clearUpTo !== undefined && end.status !== 'suspended' && end.status !== 'rejected'
    try {
      const step: StepCommit = Object.assign(rest, { runId: run.runId })
      if (this.#lostOptions) step.lost = this.#lostOptions
      if (call) step.call = { ...call, window: (this.#begun as BegunRun).window, usage: { ...call.usage } }
      if (end) step.end = runEnd(end, this.#drained.unread, this.#clearUpTo !== undefined, titleSlot?.until, scores?.rows(end))
      committed = await this.#commitStep(step)
      this.#lostOptions = undefined
    } catch (error) {
      // The next owner writes and publishes from here on. This run must publish nothing more.
      if (isHeedError(error) && error.code === 'fenced') this.#run?.abort((this.#leaseLost ??= error))
      throw error
    } finally {
      titleSlot?.release()
    }
    if (this.#ended) this.#checkLease()
    // The commit has confirmed the lease.
    if (this.#heldBack) this.confirmLease()
    const { taken, ended, more, left, rows, wantsTitle, waits = false, gone } = committed
    if (gone) announceEnded(this.#runtime, gone)
    if (wantsTitle) this.#runtime.titles.start({ threadId: this.fence.threadId, agentId: run.agentId, attempts: 1 }, titler)
    this.live.committed((drainedRows(taken).at(-1) ?? rows.at(-1))?.seq)
    this.#recordDrained(taken, commit.step + 1, this.#run?.processors.guardsInput ?? false)
    if (ended) {
      this.#drained.settle(end)
      if (end && scores && scores.rows(end).length > 0) scores.onStored()
      // A suspended run is ended by the caller of the abort. Without pending signals, later ones are not meant.
      if (cleared || end?.status === 'suspended' || !(more || left)) this.#clearUpTo = undefined
      if (cleared) this.#announceCleared()
      if (left) this.#runtime.peers.requestRunner(this.fence.threadId)
      this.#clearRun()
      this.#hasWork = more
      this.#suspended = end?.status === 'suspended'
    }
    return { entered: taken.map((mail) => mail.rows), ended, rows, waits, taken }
  }

  /** Renews an expired lease first. Where that fails, the fence of the commit decides. */
  #renewed(): Promise<void> | undefined {
    this.#checkLease()
    return this.#runtime.lease.expired ? this.#runtime.lease.beat() : undefined
  }

  #checkLease(): void {
    if (this.#runtime.closing) throw closed()
    if (this.#leaseLost) throw this.#leaseLost
  }

  async reviseInput({ revised, removed, added }: InputChange): Promise<void> {
    const renewed = this.#renewed()
    if (renewed) await renewed
    const { run } = this.#begun as BegunRun
    const { rows } = await this.#commitStep({ runId: run.runId, step: this.#run?.step ?? run.step, rows: added, revised, removed })
    this.live.committed(rows.at(-1)?.seq)
  }

  #commitStep(step: StepCommit): Promise<StepCommitted> {
    return whileFull(this.#runtime, () => {
      this.#checkLease()
      return this.#runtime.store.commitStep(this.fence, step)
    })
  }

  get lanes(): BegunRun['lanes'] {
    return this.#begun?.lanes ?? []
  }

  readonly history: RunHost['history'] = async (query) =>
    (await this.#runtime.store.listRows({ threadId: this.fence.threadId }, query)).rows

  async laneRows(id: string): Promise<{ rows: MessageRow[]; left: number }> {
    const lane = await this.#runtime.store.readLane({ threadId: this.fence.threadId }, id, { placed: true })
    return { rows: lane?.signals.map(({ row }) => row) ?? [], left: lane?.left ?? 0 }
  }

  #recordDrained(taken: readonly MailboxRow[], step: number, mayReject: boolean): void {
    for (const { id } of taken) this.#interruptNext.delete(id)
    if (taken.length > 0) this.#drained.add(taken, step, mayReject)
  }

  /** Whether processors may still reject this drained signal. */
  isUnconfirmed(signalId: string): boolean {
    return this.#drained.isUnconfirmed(signalId)
  }

  withdraw(): void {
    this.live.withdraw()
  }

  beforeModelCall(): void {
    this.#drained.confirm()
    if (!this.#runtime.draining || this.#callers.length > 0) return
    // Everything before is stored, and no caller here awaits the rest: another process continues.
    this.#leaseLost ??= closed()
    this.#stop?.abort(this.#leaseLost)
  }
}

/** A repeated one has no further effect. */
function isSameAbort(one: HostAbort, other: HostAbort): boolean {
  return (
    one.runId === other.runId && one.clearPending === other.clearPending && one.clearUpTo === other.clearUpTo &&
    one.resourceId === other.resourceId
  )
}
