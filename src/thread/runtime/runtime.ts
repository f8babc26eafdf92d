import type { Bus } from '../../bus/contract.ts'
import { systemClock, type Clock, type Timer } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { consoleLogger, type Logger } from '../../base/logger.ts'
import type { BegunRun, Fence, ThreadStore, Window, Windows } from '../../store/contract/threads.ts'
import { PendingEchoes } from '../watch/echoes.ts'
import { Sends } from '../send/send.ts'
import { Waiters } from '../send/waiters.ts'
import { ThreadHost } from './host.ts'
import { LiveThread } from '../watch/live.ts'
import { Peers } from '../cluster/peers.ts'
import type { Attendant, Runnable, RunEnvironment } from './runnable.ts'
import { resolveLocalWaiters } from '../send/outcomes.ts'
import { isClosed, Sweeper } from './sweeper.ts'
import { Titling } from './titles.ts'
import { KeepAlive } from '../../base/promises.ts'
import type { TracingOptions } from '../../tracing/options.ts'
import { acquireStore, namespaceOf, releaseStore } from '../../store/contract/storage.ts'

/** After a store failed in the middle of a thread, how long until it is asked again. */
const retryMs = 1_000

/** How many orphaned threads are taken up at once. */
const sweepPage = 100

/** Where a run lives. */
export interface Target {
  threadId: string
  resourceId: string
}

export interface ThreadRuntimeOptions {
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
  /** How long a process counts as alive after its last heartbeat. Defaults to 10 s; it renews three times as often. */
  leaseMs?: number
  /** How often the store is swept for threads that need a runner. Defaults to 5 s. */
  sweepMs?: number
}

/** The threads of one store in one process: who runs here, who watches, who waits for an outcome. */
export class ThreadRuntime implements RunEnvironment {
  readonly clock: Clock
  readonly logger: Logger
  readonly tracing: ThreadRuntimeOptions['tracing']
  readonly newId: () => string
  readonly environment: RunEnvironment
  /** Names this process in leases. */
  readonly owner: string
  readonly keepAlive = new KeepAlive()
  readonly waiters = new Waiters(this.keepAlive)
  readonly sends = new Sends(this)
  readonly titles = new Titling(this)
  readonly peers = new Peers(this)
  readonly sweepMs: number
  /** Runs that are at work here, and those that a send of this process was promised. */
  readonly active = new Map<string, Target>()
  /** Signals that are kept, and runs that are ended while nobody is at work on them. */
  readonly pendingEchoes = { kept: new PendingEchoes(), ended: new PendingEchoes() }
  closing = false
  /** The store can be asked at once. */
  isOpen = false

  readonly #source: ThreadStore | (() => Promise<ThreadStore>)
  #store: ThreadStore | undefined
  readonly #bus: Bus | undefined
  readonly #agents = new Map<string, Runnable>()
  #windows: Windows = new Map()
  readonly #hosts = new Map<string, { host: ThreadHost; done: Promise<void> }>()
  readonly #lives = new Map<string, { live: LiveThread; users: number }>()
  /** The last publication of a thread that waits for a run or for the bus. */
  readonly #publishing = new Map<string, Promise<void>>()
  readonly #leaseMs: number
  #opened: Promise<void> | undefined
  #heartbeat: Timer | undefined
  /** Until then, by our clock, nobody takes a thread from us. */
  #aliveUntil = -Infinity
  #lapses = 0
  #renewing: Promise<void> | undefined
  readonly #retries = new Set<Timer>()
  readonly #attendants: Attendant[] = []
  readonly #sweeper = new Sweeper(this, sweepPage, () => {
    for (const attendant of this.#attendants) attendant.look()
  })

  constructor(options: ThreadRuntimeOptions) {
    this.#source = options.store
    this.#bus = options.bus
    this.clock = options.clock ?? systemClock
    this.logger = options.logger ?? consoleLogger
    this.tracing = options.tracing
    this.newId = options.newId ?? newId
    this.environment = options.environment ?? this
    this.owner = this.newId()
    this.#leaseMs = options.leaseMs ?? 10_000
    this.sweepMs = options.sweepMs ?? 5_000
  }

  /** Everything that comes after `open()` may rely on it. */
  get store(): ThreadStore {
    if (!this.#store) throw new HeedError('closed', 'The store is not open yet.')
    return this.#store
  }

  // Agents

  register(agent: Runnable): void {
    this.#agents.set(agent.id, agent)
    const window = agent.window({})
    if (!isSameWindow(this.#windows.get(agent.id), window)) this.#windows = new Map(this.#windows).set(agent.id, window)
  }

  /** The agents that may run here, with the window of each as it was last registered. Not changed once it is handed out. */
  get windows(): Windows {
    return this.#windows
  }

  agent(id: string): Runnable {
    const agent = this.#agents.get(id)
    if (!agent) throw new HeedError('unknown_agent', `No agent '${id}' is known here. Register it: new Heed({ agents: { … } }).`, { details: { agentId: id } })
    return agent
  }

  knows(agentId: string): boolean {
    return this.#agents.has(agentId)
  }

  agentIds(): string[] {
    return [...this.#agents.keys()]
  }

  attend(attendant: Attendant): void {
    this.#attendants.push(attendant)
  }

  inboxChanged(resourceIds: readonly string[]): void {
    for (const attendant of this.#attendants) attendant.changed?.(resourceIds)
  }

  // Life

  /** Opens the store, tells the others that this process lives, and takes up what was left. */
  open(): Promise<void> {
    if (this.closing) return Promise.reject(new HeedError('closed', 'This Heed was closed. Ask the process that runs now.'))
    if (!this.#opened) {
      this.#opened = this.#open()
      // Before all who wait for it: nobody who finds it open overtakes them.
      this.#opened.then(() => (this.isOpen = true), () => {})
    }
    return this.#opened
  }

  async #open(): Promise<void> {
    try {
      const store = typeof this.#source === 'function' ? await this.#source() : this.#source
      await store.open()
      acquireStore(store)
      this.#store = store
    } catch (error) {
      // What can't be opened now may be opened later.
      this.#opened = undefined
      throw error
    }
    await this.#beat()
    this.peers.connect(this.#bus ?? this.store.bus?.(), namespaceOf(this.store))
    this.#sweeper.start()
  }

  /** Whether others may have taken our threads: this process slept, or could not renew its lease. Nothing may be said then. */
  get lapsed(): boolean {
    return this.clock.now() > this.#aliveUntil
  }

  /** One row for all threads of this process. A beat that fails is tried again at the next. */
  async #beat(): Promise<void> {
    const until = this.clock.now() + this.#leaseMs
    try {
      await this.store.heartbeat(this.owner, until)
      // Renewed too late: each thread has to be asked for whether it is still ours.
      if (this.lapsed) {
        this.#lapses++
        for (const { host } of this.#hosts.values()) host.lose()
      }
      this.#aliveUntil = until
    } catch (error) {
      if (!this.endedBy(error)) this.logger.error('the heartbeat failed; another process may take over', { error: String(error) })
    }
    this.#heartbeat?.cancel()
    if (!this.closing) this.#heartbeat = this.clock.after(this.#leaseMs / 3, () => void this.#beat(), { background: true })
  }

  /** No run begins on a lease that others count as over. */
  async #renew(): Promise<void> {
    this.#renewing ??= this.#beat().finally(() => (this.#renewing = undefined))
    await this.#renewing
    if (this.lapsed) throw new HeedError('store_failed', 'The lease of this process could not be renewed.', { retryable: true })
  }

  /** Whether an error is none to tell of, because this runtime ended. It does so where its store was closed by another: nothing may be left that asks it. */
  endedBy(failure: unknown): boolean {
    if (this.closing) return true
    if (!isClosed(failure)) return false
    if (this.#hosts.size > 0) this.logger.warn('the storage was closed while threads ran on it; they go on when it is opened again', { threads: this.#hosts.size })
    this.close().catch(() => {})
    return true
  }

  /** Takes up threads that nobody runs although something waits in them. Answers how many. */
  async sweep(limit = sweepPage): Promise<number> {
    await this.open()
    const orphans = await this.store.listOrphans(this.clock.now(), limit, this.agentIds())
    let taken = 0
    for (const { threadId } of orphans) if (!this.closing && (await this.wake(threadId))) taken++
    await this.titles.sweep()
    return taken
  }

  /** Claims the thread if it needs a runner, and runs it. `again`: a lease of ours that its runner here gave up. */
  async wake(threadId: string, again?: Fence): Promise<boolean> {
    const claimed = await this.answered(threadId, () => this.store.claim(threadId, this.owner, this.agentIds(), again))
    if (claimed) this.run(claimed.fence)
    return claimed !== null
  }

  /**
   * Asks the store for something that may give this process the thread. When the answer is lost, the thread may be ours without our
   * knowing: it is then taken up. Asking once more is safe, since everything here is known by its id.
   */
  answered<T>(threadId: string, ask: () => Promise<T>): Promise<T> {
    return ask().catch(async (error: unknown) => {
      if (isHeedError(error) && !error.retryable) throw error
      try {
        return await ask()
      } finally {
        await this.#adopt(threadId)
      }
    })
  }

  /** Runs a thread whose lease names this process although nothing of it runs here. */
  async #adopt(threadId: string): Promise<void> {
    const thread = await this.store.getThread({ threadId })
    if (thread?.status !== 'running' || thread.owner !== this.owner || this.#hosts.has(threadId)) return
    this.logger.warn('a thread is taken up whose lease was given and not answered', { threadId })
    this.run({ threadId, owner: this.owner, epoch: thread.epoch }, thread.resourceId)
  }

  /**
   * Stops running: threads go on in the next process that opens the store. Sends that were accepted stay accepted; what they
   * came to is for that process to say.
   */
  async close(): Promise<void> {
    if (this.closing) return
    this.closing = true
    this.#heartbeat?.cancel()
    this.#sweeper.end()
    for (const timer of this.#retries) timer.cancel()
    await Promise.all(this.#attendants.map((attendant) => attendant.close()))
    const closed = new HeedError('closed', 'This Heed was closed.')
    const working = [...this.#hosts.values()]
    for (const { host } of working) host.abort({ reason: closed, clearPending: false })
    await Promise.all([...working.map(({ done }) => done), ...this.#publishing.values(), this.titles.close(), this.sends.inFlight.whenIdle()])
    this.waiters.close(closed)
    for (const { live } of this.#lives.values()) live.close()
    this.keepAlive.close()
    if (!this.#opened) return
    await this.#opened.catch(() => {})
    this.#heartbeat?.cancel()
    this.#sweeper.end()
    if (!this.#store) return
    try {
      await this.#store.resign(this.owner)
      // Senders that are told only now still get what was theirs on the disk.
      await this.sends.inFlight.whenIdle()
    } finally {
      await this.peers.close()
      await releaseStore(this.#store)
    }
  }

  // Running

  /**
   * Runs a thread whose lease this process has, from `begun` on where the store began it already. A run before it on the same thread
   * says its last word first.
   */
  run(fence: Fence, resourceId?: string, begun?: BegunRun | null): void {
    if (this.closing) return
    const { threadId } = fence
    const before = this.#hosts.get(threadId)
    const lapses = this.#lapses
    const live = this.hold(threadId)
    live.resourceId = resourceId ?? live.resourceId
    const host = new ThreadHost(this, fence, live)
    const done = this.#turn(threadId, before?.done, this.peers.poll())
      .then(() => {
        this.peers.attach(live)
        return this.lapsed ? this.#renew().then(() => host.work()) : host.work(lapses === this.#lapses ? begun : undefined)
      })
      .catch((error: unknown) => this.#stopped(fence, error))
      .then(() => this.#leave(threadId, host))
    this.#hosts.set(threadId, { host, done })
  }

  /** Resolves when a run or a publication may begin: the run and the publications before it are over, and it is known what peers watch. */
  #turn(threadId: string, before: Promise<void> | undefined, polled: Promise<void> | undefined): Promise<unknown> {
    const publishing = this.#publishing.get(threadId)
    return polled || publishing ? Promise.all([before, publishing, polled]) : (before ?? Promise.resolve())
  }

  #leave(threadId: string, host: ThreadHost): void {
    const last = this.#hosts.get(threadId)?.host === host
    if (last) {
      this.#hosts.delete(threadId)
      this.peers.release(threadId)
    }
    this.letGo(threadId)
    if (!last) return
    this.settle(threadId)
    if (!this.closing) for (const attendant of this.#attendants) attendant.idle(threadId)
  }

  /** Nobody runs the thread here: what was accepted and is not settled is looked up. */
  settle(threadId: string): void {
    if (this.closing) return
    resolveLocalWaiters(this, threadId).catch((error: unknown) => {
      if (!this.closing) this.logger.error('what waited on a thread could not be settled', { threadId, error: String(error) })
    })
  }

  /**
   * Publishes chunks on a thread that is not running: after the last chunk of the run before, and in the order of the calls. It happens before
   * this returns where the thread has no run here and no peer is connected.
   */
  publish(threadId: string, write: (live: LiveThread) => void): void {
    const entry = this.#hosts.get(threadId)
    const held = this.liveOf(threadId) && this.hold(threadId)
    const polled = this.peers.poll()
    if (!entry && !polled && !this.#publishing.has(threadId)) return this.#publishNow(threadId, held, write)
    const done = this.#turn(threadId, entry?.done, polled)
      .then(() => this.#publishNow(threadId, held, write))
      .catch((error: unknown) => this.logger.error('chunks of a thread could not be published', { threadId, error: String(error) }))
      .finally(() => {
        if (this.#publishing.get(threadId) === done) this.#publishing.delete(threadId)
      })
    this.#publishing.set(threadId, done)
    if (entry) entry.done = done
  }

  /** `held`: the live side of the thread, where it existed as the publication was asked for. */
  #publishNow(threadId: string, held: LiveThread | undefined, write: (live: LiveThread) => void): void {
    if (!held && !this.peers.isWatched(threadId)) return
    const live = held ?? this.hold(threadId)
    this.peers.attach(live)
    write(live)
    if (!this.#hosts.has(threadId)) this.peers.release(threadId)
    this.letGo(threadId)
  }

  #stopped(fence: Fence, error: unknown): void {
    if (this.closing || (isHeedError(error) && !error.retryable && (error.code === 'closed' || error.code === 'fenced'))) return
    this.logger.error('a thread stopped; it is taken up again', { threadId: fence.threadId, error: String(error) })
    // Somebody may wait for what it comes to: a process doesn't end over this.
    const timer = this.clock.after(retryMs, () => {
      this.#retries.delete(timer)
      this.wake(fence.threadId, fence).catch((failed: unknown) => this.#stopped(fence, failed))
    })
    this.#retries.add(timer)
  }

  hostOf(threadId: string): ThreadHost | undefined {
    return this.#hosts.get(threadId)?.host
  }

  /**
   * Resolves when the threads that run here, and did not `before`, are idle or suspended. `onIdle` is called for each of them; a run that it
   * starts is awaited too.
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

  hosts(): ThreadHost[] {
    return [...this.#hosts.values()].map(({ host }) => host)
  }

  /** The live side of a thread, kept as long as somebody runs or watches it. Every `hold` has its `letGo`. */
  hold(threadId: string): LiveThread {
    let entry = this.#lives.get(threadId)
    if (!entry) this.#lives.set(threadId, (entry = { live: new LiveThread(threadId, this.keepAlive), users: 0 }))
    entry.users++
    return entry.live
  }

  letGo(threadId: string): void {
    const entry = this.#lives.get(threadId)
    if (entry && --entry.users === 0) this.#lives.delete(threadId)
  }

  liveOf(threadId: string): LiveThread | undefined {
    return this.#lives.get(threadId)?.live
  }
}

function isSameWindow(one: Window | undefined, other: Window): boolean {
  if (one === undefined || one === false || other === false) return one === other
  return one.low === other.low && one.high === other.high
}
