import type { Bus } from '../../bus/contract.ts'
import { systemClock, withTimeout, type Clock } from '../../base/clock.ts'
import { HeedError, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { consoleLogger, type Logger } from '../../base/logger.ts'
import type { BegunRun, Fence, FormerLease, RunRow, ThreadStore } from '../../store/contract/threads.ts'
import { PendingEchoes } from '../stream/echoes.ts'
import { Sends } from '../send/send.ts'
import { Waiters } from '../send/waiters.ts'
import { seqBefore } from './drained-signals.ts'
import { endIfFormer, threadDeleted } from './ended-threads.ts'
import { listenToStore } from './rewind.ts'
import { ThreadHost } from './host.ts'
import { LostAnswers, ProcessLease } from './process-lease.ts'
import { LiveThread } from '../stream/live.ts'
import { SideChunks } from '../stream/side-chunks.ts'
import { Peers } from '../cluster/peers.ts'
import { RegisteredAgents, type BackgroundService, type RunEnvironment } from './runnable.ts'
import { RunSlotPool, RunSlots, RunTurn } from './run-slots.ts'
import { resolveLocalWaiters } from '../send/outcomes.ts'
import { isClosed, LaterClaims, Sweeper } from './sweeper.ts'
import { Titles } from './titles.ts'
import { KeepAlive, KeyedMutex } from '../../base/promises.ts'
import { RecentMap } from '../../base/recent-map.ts'
import type { Release } from '../../base/slots.ts'
import type { TracingOptions } from '../../tracing/options.ts'
import { acquireStore, namespaceOf, releaseStore } from '../../store/contract/storage.ts'
import { runOutsideCalls } from '../../run/tools/active-call.ts'

/** How many threads without a runner one sweep claims. */
const sweepPage = 100

/** How long a close waits for runs that were aborted. */
const closeMs = 5_000
/** How long a process counts as alive after its last heartbeat. It renews its lease three times in that time. */
const leaseMs = 10_000

/** Errors after which a thread is not claimed again. */
const finalCodes: ReadonlySet<string> = new Set<HeedErrorCode>(['closed', 'fenced', 'thread_deleted', 'thread_not_found'])

interface HostEntry {
  host: ThreadHost
  turn: RunTurn
  done: Promise<void>
}

/** The thread of a run and its resource. */
export interface Target {
  threadId: string
  resourceId: string
}

interface ThreadRuntimeOptions {
  /** The store, or a function that opens it at first use. */
  store: ThreadStore | (() => Promise<ThreadStore>)
  /** Connects the processes on the store. Defaults to the store's own bus. */
  bus?: Bus
  clock?: Clock
  logger?: Logger
  /** `false` disables tracing, also where an SDK is registered. */
  tracing?: TracingOptions | false | undefined
  newId?: () => string
  /** Passed to agents that prepare a run. Defaults to the runtime itself. */
  environment?: RunEnvironment
  /** The slots of the runs of this process, which its runtimes share. */
  runSlots?: RunSlotPool
}

/** The threads of one store in one process: their hosts, their subscribers and the callers that wait for outcomes. */
export class ThreadRuntime extends RegisteredAgents implements RunEnvironment {
  readonly clock: Clock
  readonly logger: Logger
  readonly tracing: ThreadRuntimeOptions['tracing']
  readonly newId: () => string
  readonly environment: RunEnvironment
  readonly lease: ProcessLease
  readonly keepAlive = new KeepAlive()
  readonly waiters = new Waiters(this.keepAlive)
  readonly sends = new Sends(this)
  readonly titles = new Titles(this)
  readonly peers = new Peers(this)
  /** How often the store is swept for threads that need a runner. */
  readonly sweepMs = 5_000
  /** Runs that are active in this process, and those that are reserved for its sends. */
  readonly activeRuns = new Map<string, Target>()
  /** The agents of the runs that were last active or asked for. */
  readonly #agents = new RecentMap<string>(10_000)
  /** Persisted signals, and ended runs without a host, that are stored and not yet published. */
  readonly pendingEchoes = { persisted: new PendingEchoes(), ended: new PendingEchoes() }
  /** What subscribers receive beside the streams of their threads. */
  readonly sideChunks = new SideChunks()
  readonly runSlots: RunSlots
  readonly #stop = new AbortController()
  #closed: Promise<void> | undefined
  #draining = false
  /** The store can be called without waiting. */
  isOpen = false
  readonly #source: ThreadStore | (() => Promise<ThreadStore>)
  #store: ThreadStore | undefined
  readonly #bus: Bus | undefined
  readonly #hosts = new Map<string, HostEntry>()
  /** All hosts that have not ended, also those that were replaced by another of their thread. */
  readonly #unfinished = new Set<HostEntry>()
  readonly #liveThreads = new Map<string, { live: LiveThread; users: number }>()
  /** The last publication of a thread that waits for a run or for the bus. */
  readonly #publishing = new Map<string, Promise<void>>()
  #opened: Promise<void> | undefined
  #stopListening: (() => void) | undefined
  readonly #laterClaims = new LaterClaims(this, (threadId, again) => this.#claimAgain(threadId, again))
  /** Claims of one thread run one after the other, so that a second one finds the host of the first. */
  readonly #claims = new KeyedMutex()
  readonly #lostAnswers = new LostAnswers(this, this.#laterClaims, (threadId) => this.#adopt(threadId))
  readonly #services: BackgroundService[] = []
  readonly #sweeper = new Sweeper(this, sweepPage, () => {
    for (const service of this.#services) service.poll?.()
  })

  constructor(options: ThreadRuntimeOptions) {
    super()
    this.#source = options.store
    this.#bus = options.bus
    this.clock = options.clock ?? systemClock
    this.logger = options.logger ?? consoleLogger
    this.tracing = options.tracing
    this.newId = options.newId ?? newId
    this.environment = options.environment ?? this
    this.lease = new ProcessLease(this, leaseMs)
    this.runSlots = new RunSlots(this, options.runSlots ?? new RunSlotPool())
  }

  /** Names this process in leases. */
  get owner(): string {
    return this.lease.owner
  }

  /** This process claims no thread any more, and its runs end at their next boundary: it is about to close. */
  get draining(): boolean {
    return this.#draining || this.closing
  }

  get closing(): boolean {
    return this.#stop.signal.aborted
  }

  /** Aborts with the error that callers receive as soon as this process begins to close: a function of an agent may never settle. */
  get stopping(): AbortSignal {
    return this.#stop.signal
  }

  addActive({ runId, agentId, threadId, resourceId }: Pick<RunRow, 'runId' | 'agentId' | 'threadId' | 'resourceId'>): void {
    this.activeRuns.set(runId, { threadId, resourceId })
    this.#agents.set(runId, agentId)
  }

  /** The agent of a run; undefined for a run that is not stored. */
  async agentOf(runId: string): Promise<string | undefined> {
    const agentId = this.#agents.get(runId) ?? (await this.store.findRun(runId))?.agentId
    if (agentId !== undefined) this.#agents.set(runId, agentId)
    return agentId
  }

  /** Throws before `open()` has resolved. */
  get store(): ThreadStore {
    if (!this.#store) throw new HeedError('closed', 'The store is not open yet.')
    return this.#store
  }

  addService(service: BackgroundService): void {
    this.#services.push(service)
  }

  onInboxChange(resourceIds: readonly string[]): void {
    for (const service of this.#services) service.onInboxChange?.(resourceIds)
  }

  // Opening and closing

  /** Opens the store, writes the first heartbeat, connects to the bus and starts the sweeps. */
  open(): Promise<void> {
    if (this.closing) return Promise.reject(new HeedError('closed', 'This Heed was closed. Ask the process that runs now.'))
    if (!this.#opened) {
      this.#opened = this.#open()
      // Set before waiting callers continue, so that a later caller cannot overtake them.
      this.#opened.then(() => (this.isOpen = true), () => {})
      for (const service of this.#services) service.onOpen?.()
    }
    return this.#opened
  }

  async #open(): Promise<void> {
    try {
      const store = typeof this.#source === 'function' ? await this.#source() : this.#source
      await store.open()
      acquireStore(store)
      store.reportTo?.(this.logger)
      this.#store = store
    } catch (error) {
      // A store that fails to open may open later.
      this.#opened = undefined
      throw error
    }
    this.#stopListening = await listenToStore(this)
    await this.lease.beat()
    this.peers.connect(this.#bus ?? this.store.bus?.(), namespaceOf(this.store))
    this.#sweeper.start()
  }

  /** Whether a failure is a consequence of a close and need not be logged. A runtime whose store was closed by other code closes too. */
  isClosedBy(failure: unknown): boolean {
    if (this.closing) return true
    if (!isClosed(failure)) return false
    const threads = this.#hosts.size
    if (threads > 0) this.logger.warn('the storage was closed while threads ran on it; they continue when it is opened again', { threads })
    this.close().catch(() => {})
    return true
  }

  /** Claims and runs threads that need a runner. Returns how many. */
  async sweep(limit = sweepPage): Promise<number> {
    await this.open()
    if (this.lease.failure || this.draining) return 0
    const orphans = await this.store.listOrphans(this.lease.storeTime, limit, this.agentIds())
    let taken = 0
    for (const { threadId } of orphans) {
      if (this.draining) break
      // One thread that can't be claimed must not keep the others waiting.
      const claimed = await this.wake(threadId).catch((error: unknown) => {
        if (!this.isClosedBy(error)) this.logger.error('a thread without a runner could not be claimed', { threadId, error: String(error) })
        return false
      })
      if (claimed) taken++
    }
    await this.titles.sweep()
    return taken
  }

  /**
   * Claims the thread if it needs a runner, and runs it. `again`: a lease of this process that its host gave up; it is not claimed where
   * another host of this process has the thread since. Without a free slot, the thread is claimed later. `given`: the slot for its run.
   */
  wake(threadId: string, again?: FormerLease, given?: Release): Promise<boolean> {
    const claim = async (slot: Release | undefined) => {
      if (this.lease.failure) throw this.lease.failure
      if (this.draining || (again && this.#hosts.has(threadId))) return false
      const granted = await this.store.claim(threadId, this.owner, this.agentIds(), again)
      if (granted) this.run(granted.fence, undefined, undefined, slot)
      return granted !== null
    }
    return this.runSlots.claiming(threadId, given, again !== undefined, (slot) => (
      this.retryOnce(threadId, () => this.#claims.run(threadId, () => claim(slot)))
    ))
  }

  /** Calls the store for something that may give this process the lease of the thread, and looks for the lease if the answer is lost. */
  retryOnce<T>(threadId: string, ask: () => Promise<T>): Promise<T> {
    return this.#lostAnswers.retryOnce(threadId, ask)
  }

  /** Runs a thread whose lease names this process although no host here has that lease, and none is about to claim it again. */
  #adopt(threadId: string): Promise<void> {
    return this.#claims.run(threadId, async () => {
      const thread = await this.store.getThread({ threadId })
      if (thread?.status !== 'running' || thread.owner !== this.owner || this.draining) return
      // A host of an earlier lease ends by itself.
      if ((this.hostOf(threadId)?.fence.epoch ?? -1) >= thread.epoch || this.#laterClaims.has(threadId)) return
      if (this.#lostAnswers.leaveToCall(threadId)) return
      this.logger.warn('a thread is run whose lease was granted while the answer of the store was lost', { threadId })
      this.run({ threadId, owner: this.owner, epoch: thread.epoch }, thread.resourceId)
    })
  }

  /** Claims no thread any more, and lets the runs go on to their next boundary, or until the promise resolves. */
  async drain(until: Promise<void>): Promise<void> {
    this.#draining = true
    this.runSlots.stop()
    await Promise.race([until, Promise.all([...this.#unfinished].map(({ done }) => done))])
  }

  /**
   * Stops running: threads continue in the next process that opens the store. Accepted signals stay accepted; that process determines their
   * outcome. All calls resolve when it is closed.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    const closed = new HeedError('closed', 'This Heed was closed.')
    this.#stop.abort(closed)
    this.runSlots.stop()
    this.lease.stop()
    this.#sweeper.stop()
    this.#laterClaims.stop()
    this.peers.stopWaiting()
    await Promise.all(this.#services.map((service) => service.close()))
    const working = [...this.#unfinished]
    for (const { host } of working) host.abort({ reason: closed, clearPending: false })
    const work = [...working.map(({ done }) => done), ...this.#publishing.values(), this.titles.close()]
    // Work that ignores its abort is left: its fences are stale once this process has resigned.
    await withTimeout(this.clock, closeMs, Promise.all(work), () => {
      const threadIds = [...this.#unfinished].map(({ host }) => host.fence.threadId)
      this.logger.warn('runs or titles did not end when they were aborted; the process closes without them', { threadIds })
    })
    await this.sends.inFlight.whenIdle()
    this.waiters.close(closed)
    for (const { live } of this.#liveThreads.values()) live.close()
    this.keepAlive.close()
    if (!this.#opened) return
    await this.#opened.catch(() => {})
    this.#stopListening?.()
    this.lease.stop()
    this.#sweeper.stop()
    if (!this.#store) return
    try {
      await this.#store.resign(this.owner).catch((error: unknown) => {
        // Other code has closed the store: the leases expire.
        if (!isClosed(error)) throw error
      })
      // Senders that receive their answer only now can still flush.
      await this.sends.inFlight.whenIdle()
    } finally {
      await this.peers.close()
      await releaseStore(this.#store)
    }
  }

  // Running

  /**
   * Runs a thread whose lease this process has, beginning with `begun` where the store began the run already. The previous run of the
   * thread publishes its last chunk first. `slot`: that of the run, if it was taken.
   */
  run(fence: Fence, resourceId?: string, begun?: BegunRun | null, slot?: Release): void {
    // A lease under a former name was released, or expires.
    if (this.closing || fence.owner !== this.owner) return slot?.()
    const { threadId } = fence
    const before = this.#hosts.get(threadId)
    // Several answers may bring one lease, such as those of a repeated send.
    if (before && before.host.fence.epoch >= fence.epoch) return slot?.()
    const { lapses } = this.lease
    const live = this.acquireLive(threadId)
    live.resourceId = resourceId ?? live.resourceId
    const turn = new RunTurn(this.runSlots, threadId, () => live.resourceId ?? '', slot)
    const host = new ThreadHost(this, fence, live, turn)
    if (begun && !begun.resumed) live.announceRun(fence.epoch, seqBefore(begun.rows, begun.taken))
    // A host that has work although its lease is another's may be of a deleted thread: that one is not waited for.
    const ended = before?.host.hasWork ? this.#endedOrFormer(before) : before?.done
    // The end of a run without a host is published first.
    const ending = this.pendingEchoes.ended.flushed(threadId)
    const free = ending ? Promise.all([ended, ending]).then(() => this.#publishing.get(threadId)) : ended
    const done = this.#whenFree(threadId, free, this.peers.poll())
      .then(() => turn.begin())
      .then(() => {
        // A run that has not begun begins in the next process.
        if (this.draining && !begun) return undefined
        if (this.lease.failure) throw this.lease.failure
        this.peers.attach(live)
        if (this.lease.expired) return this.lease.renew().then(() => runOutsideCalls(() => host.work()))
        return runOutsideCalls(() => host.work(lapses === this.lease.lapses ? begun : undefined))
      })
      .then(() => this.#laterClaims.succeed(threadId), (error: unknown) => this.#onHostFailure(fence, error))
      .then(() => this.#onHostEnd(threadId, entry))
    const entry: HostEntry = { host, turn, done }
    this.#hosts.set(threadId, entry)
    this.#unfinished.add(entry)
  }

  /** Ends hosts with a lower epoch, for which later runs do not wait: the thread was deleted or replaced, or claimed elsewhere. */
  endHostsBefore(threadId: string, epoch: number, reason = threadDeleted(threadId)): void {
    for (const { host } of this.#unfinished) if (host.fence.threadId === threadId && host.fence.epoch < epoch) host.end(reason)
    const current = this.#hosts.get(threadId)
    if (!current || current.host.fence.epoch >= epoch) return
    this.#hosts.delete(threadId)
    this.#publishing.delete(threadId)
    this.peers.release(threadId)
  }

  /** Resolves when the host has ended, or when it is known to be of an earlier thread with its id. */
  async #endedOrFormer({ host, done }: HostEntry): Promise<void> {
    if (!(await endIfFormer(this, host).catch(() => false))) await done
  }

  /** Resolves when a run or a publication may begin: those before it have ended, and the subscriptions of peers are known. */
  #whenFree(threadId: string, before: Promise<void> | undefined, polled: Promise<void> | undefined): Promise<unknown> {
    const publishing = this.#publishing.get(threadId)
    return polled || publishing ? Promise.all([before, publishing, polled]) : (before ?? Promise.resolve())
  }

  #onHostEnd(threadId: string, entry: HostEntry): void {
    this.#unfinished.delete(entry)
    entry.turn.end()
    entry.host.live.withdrawRun(entry.host.fence.epoch)
    const last = this.#hosts.get(threadId) === entry
    if (last) {
      this.#hosts.delete(threadId)
      this.peers.release(threadId)
    }
    this.releaseLive(threadId)
    if (!last) return
    this.resolveWaiters(threadId)
    if (!this.closing) for (const service of this.#services) service.onThreadIdle?.(threadId)
  }

  /** Resolves the outcomes of accepted signals on a thread without a host here. */
  resolveWaiters(threadId: string): void {
    if (this.closing) return
    resolveLocalWaiters(this, threadId).catch((error: unknown) => {
      if (!this.closing) this.logger.error('the outcomes of accepted signals could not be resolved', { threadId, error: String(error) })
    })
  }

  /**
   * Publishes chunks of an epoch on a thread that is not running: after the last chunk of the run before, before a run of a later epoch,
   * and in the order of the calls. It happens before this returns where the thread has no run here and no peer is connected.
   */
  publish(threadId: string, epoch: number, write: (live: LiveThread) => void): void {
    const current = this.#hosts.get(threadId)
    const entry = current && (current.host.started || current.host.fence.epoch <= epoch) ? current : undefined
    const held = this.liveOf(threadId) && this.acquireLive(threadId)
    const polled = this.peers.poll()
    if (!entry && !polled && !this.#publishing.has(threadId)) return this.#publishNow(threadId, epoch, held, write)
    const done = this.#whenFree(threadId, entry?.done, polled)
      .then(() => this.#publishNow(threadId, epoch, held, write))
      .catch((error: unknown) => this.logger.error('chunks of a thread could not be published', { threadId, error: String(error) }))
      .finally(() => {
        if (this.#publishing.get(threadId) === done) this.#publishing.delete(threadId)
      })
    this.#publishing.set(threadId, done)
    if (entry) entry.done = done
  }

  /** `held`: the live thread, if there was one when the publication was requested. */
  #publishNow(threadId: string, epoch: number, held: LiveThread | undefined, write: (live: LiveThread) => void): void {
    if (!held && !this.peers.isWatched(threadId)) return
    const live = held ?? this.acquireLive(threadId)
    // Another process published a later epoch meanwhile. Its subscribers started from a snapshot, which has the change of this epoch.
    const isLate = live.epoch > epoch && this.hostOf(threadId)?.fence.epoch !== live.epoch
    if (!isLate) {
      this.peers.attach(live)
      write(live)
      if (!this.#hosts.has(threadId)) this.peers.release(threadId)
    }
    this.releaseLive(threadId)
  }

  #onHostFailure(fence: FormerLease, error: unknown): void {
    if (this.draining || (isHeedError(error) && !error.retryable && finalCodes.has(error.code)))
      return this.#laterClaims.succeed(fence.threadId)
    this.lease.fail(error)
    if (!this.lease.failure)
      this.logger.error('the host of a thread failed; the thread is claimed again', { threadId: fence.threadId, error: String(error) })
    this.#laterClaims.add(fence.threadId, error, fence)
  }

  /** Takes a thread again whose host failed (`again`: its lease), or whose lease may be this process's. */
  async #claimAgain(threadId: string, again: FormerLease | undefined): Promise<void> {
    try {
      // A lease that was granted since then, with an answer that was lost, is not the former one.
      if (!(again && (await this.wake(threadId, again))) && !this.#hosts.has(threadId)) await this.#adopt(threadId)
      if (!this.#hosts.has(threadId)) this.#laterClaims.succeed(threadId)
    } catch (error) {
      if (again) this.#onHostFailure(again, error)
      else this.#laterClaims.add(threadId, error)
    }
  }

  /** The last failure of a host of the thread in this process. */
  lastFailure(threadId: string): unknown {
    return this.#laterClaims.lastFailure(threadId)
  }

  hostOf(threadId: string): ThreadHost | undefined {
    return this.#hosts.get(threadId)?.host
  }

  /**
   * Resolves when the threads that run here, and did not `before`, are idle or suspended. `onIdle` is called for each of them; a run that
   * it starts is awaited too.
   */
  async whenIdle(before: ReadonlySet<string>, onIdle: (threadId: string) => Promise<void>): Promise<void> {
    await Promise.all(this.threadIds().filter((threadId) => !before.has(threadId)).map(async (threadId) => {
      for (let host = this.#hosts.get(threadId); host && !this.closing; host = this.#hosts.get(threadId)) {
        await host.done
        if (!this.closing) await onIdle(threadId)
      }
    }))
  }

  /** The threads that run here. */
  threadIds(): string[] {
    return [...this.#hosts.keys()]
  }

  /** The threads that run or are watched here, and those on which a caller waits. */
  knownThreadIds(): string[] {
    return [...this.#hosts.keys(), ...this.#liveThreads.keys(), ...this.waiters.threads()]
  }

  hosts(): ThreadHost[] {
    return [...this.#hosts.values()].map(({ host }) => host)
  }

  /** The live thread, retained while it has a host or subscribers. Each `acquireLive` needs its `releaseLive`. */
  acquireLive(threadId: string): LiveThread {
    let entry = this.#liveThreads.get(threadId)
    if (!entry) this.#liveThreads.set(threadId, (entry = { live: new LiveThread(threadId, this.keepAlive), users: 0 }))
    entry.users++
    return entry.live
  }

  releaseLive(threadId: string): void {
    const entry = this.#liveThreads.get(threadId)
    if (entry && --entry.users === 0) this.#liveThreads.delete(threadId)
  }

  liveOf(threadId: string): LiveThread | undefined {
    return this.#liveThreads.get(threadId)?.live
  }
}
