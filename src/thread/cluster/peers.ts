import type { Bus, BusConnection, BusHandler } from '../../bus/contract.ts'
import type { BusMessage } from '../../bus/message.ts'
import { systemClock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { endIfFormer, endThreads } from '../runtime/ended-threads.ts'
import { AbandonedRuns } from '../runtime/sweeper.ts'
import type { ThreadHost } from '../runtime/host.ts'
import type { DataChunk } from '../../message/chunk.ts'
import type { LiveThread } from '../stream/live.ts'
import { memberOf, RemoteWatching } from './remote-watching.ts'
import type { Target, ThreadRuntime } from '../runtime/runtime.ts'
import { resolveRemoteWaiters } from '../send/outcomes.ts'

/** Whether a run was aborted, and which. */
export interface AbortAnswer {
  aborted: boolean
  runId?: string
}

interface AbortRequest {
  threadId: string
  runId?: string
  clearPending: boolean
  clearUpTo?: number
}

/** How long the start of a run, or of a subscription, waits for the bus. Afterwards it goes on as if the messages were lost. */
const busMs = 5_000
const fallback = 'sweeps of the store find the work of other processes'

/**
 * Sends messages to the other processes on the store and acts on theirs. Messages only make things happen sooner: each receiver reads the
 * store before it acts, and the sweep finds what no message announced.
 */
export class Peers implements BusHandler {
  readonly #runtime: ThreadRuntime
  readonly #abandoned: AbandonedRuns
  #connection: BusConnection | undefined
  #remote: RemoteWatching | undefined
  #connecting: Promise<void> | undefined
  /** Pending until the peers had time to announce what they watch: a run that ended earlier would reach no subscriber there. */
  #handshake: Promise<void> | undefined
  /** Requests to other processes that are not answered yet, by their id. */
  readonly #requests = new Map<string, (answer: AbortAnswer) => void>()
  /** Each ends one wait for the bus. */
  readonly #waiting = new Set<() => void>()
  /** The hosts at the time of the last tick. */
  #lastHosts = new WeakSet<ThreadHost>()

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
    this.#abandoned = new AbandonedRuns(runtime)
  }

  /** Connects to the bus. A failure is logged once; the sweep of the store then finds what other processes do. */
  connect(bus: Bus | undefined, namespace: string): void {
    if (!bus || this.#connecting) return
    const connecting = this.#connect(bus, namespace)
    this.#connecting = connecting
    const ready = connecting.then(() => (this.#connection?.hasPeers ? this.#connection.ready?.() : undefined))
    this.#handshake = this.#withTimeout(ready).finally(() => (this.#handshake = undefined))
  }

  async #connect(bus: Bus, namespace: string): Promise<void> {
    try {
      const connection = await bus.connect({ namespace, id: this.#runtime.lease.member, handler: this })
      this.#connection = connection
      this.#remote = new RemoteWatching(this.#runtime, connection, (promise) => this.#withTimeout(promise))
      for (const host of this.#runtime.hosts()) if (host.started) this.#remote.attach(host.live)
      connection.send({ kind: 'hello' })
    } catch (error) {
      this.#runtime.logger.warn(`the bus can not be used; ${fallback}`, { code: 'bus_failed', error: String(error) })
    }
  }

  /** Resolves with the promise of a bus, or after a timeout: callers continue without the bus. */
  async #withTimeout(promise: Promise<void>): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    if (this.#runtime.closing) resolve()
    else this.#waiting.add(resolve)
    let answered = false
    // By the system's clock: the bus answers in real time, and a clock of the program may jump.
    const timer = systemClock.after(busMs, () => {
      // A process that was paused runs its due timers before it reads the answers that arrived meanwhile.
      setImmediate(() => {
        if (!answered) this.#runtime.logger.warn(`the bus does not answer; ${fallback}`, { code: 'bus_failed' })
        resolve()
      })
    })
    try {
      await Promise.race([promise, late])
    } catch (error) {
      this.#runtime.logger.warn(`the bus failed; ${fallback}`, { code: 'bus_failed', error: String(error) })
    } finally {
      answered = true
      timer.cancel()
      this.#waiting.delete(resolve)
    }
  }

  /** The process closes: runs and subscriptions no longer wait for the bus. */
  stopWaiting(): void {
    for (const end of this.#waiting) end()
  }

  /** Announces that threads that ran here need another runner. */
  async close(): Promise<void> {
    await this.#connecting
    for (const answer of this.#requests.values()) answer({ aborted: false })
    this.#remote?.close()
    this.#connection?.send({ kind: 'goodbye' })
    await this.#connection?.close()
    this.#connection = undefined
    this.#remote = undefined
  }

  // Sending

  /** Signals are pending on a thread that no process runs, and this process can't run it. */
  requestRunner(threadId: string): void {
    this.#connection?.send({ kind: 'mail', threadId })
  }

  /** Signals that other processes sent to the thread have an outcome. */
  announceOutcomes(threadId: string, read = false): void {
    this.#connection?.send({ kind: 'settled', threadId, ...(read && { read }) })
  }

  /** The thread belongs to another resource: subscriptions of its old resource are refused from here on, in every process. */
  transferred(threadId: string, resourceId: string): void {
    this.#setResource(threadId, resourceId)
    this.#connection?.send({ kind: 'transferred', threadId, resourceId })
  }

  /** These threads were deleted; without ids, all were replaced by those of a backup. */
  announceEnded(threadIds: readonly string[] | undefined): void {
    this.#connection?.send(threadIds ? { kind: 'deleted', threadIds: [...threadIds] } : { kind: 'restored' })
  }

  /** The inboxes of these resources changed. */
  announceInbox(resourceIds: string[]): void {
    if (this.#connection?.hasPeers) this.#connection.send({ kind: 'inbox', resourceIds })
  }

  /** A chunk beside the stream of a thread: to its subscribers in this process and in others. */
  publishBeside(thread: Target, chunk: DataChunk): void {
    this.#runtime.sideChunks.emit(thread, chunk)
    if (this.isWatched(thread.threadId)) this.#connection?.send({ kind: 'beside', ...thread, chunk })
  }

  interrupt(owner: string, threadId: string, signalId: string): void {
    this.#connection?.send({ kind: 'interrupt', threadId, signalId }, memberOf(owner))
  }

  /** Asks the runner to abort. Undefined when it doesn't answer within `ms`. */
  async abort(owner: string, question: AbortRequest, ms: number): Promise<AbortAnswer | undefined> {
    const ask = this.#runtime.newId()
    const { promise, resolve } = Promise.withResolvers<AbortAnswer | undefined>()
    this.#requests.set(ask, resolve)
    const timer = this.#runtime.clock.after(ms, () => resolve(undefined))
    this.#connection?.send({ kind: 'abort', ask, ...question }, memberOf(owner))
    try {
      return await promise
    } finally {
      timer.cancel()
      this.#requests.delete(ask)
    }
  }

  // Watching

  async watch(live: LiveThread): Promise<void> {
    await this.#connecting
    await this.#remote?.watch(live)
  }

  unwatch(threadId: string): void {
    this.#remote?.unwatch(threadId)
  }

  /** Follows a thread that another process runs; `owner: undefined` asks all of them. False when none answers. */
  async follow(threadId: string, owner: string | undefined, after: string | undefined): Promise<boolean> {
    return (await this.#remote?.follow(threadId, owner === undefined ? undefined : memberOf(owner), after)) ?? false
  }

  /** The runner of the thread did not answer. */
  markGap(threadId: string): void {
    this.#remote?.markGap(threadId)
  }

  /**
   * Delivers what peers have sent before: a subscription there that was flushed is known when the promise resolves. Undefined without
   * peers, where nothing has to be waited for.
   */
  poll(): Promise<void> | undefined {
    if (this.#handshake) return this.#handshake.then(() => this.poll())
    return this.#connection?.hasPeers ? this.#withTimeout(this.#connection.poll()) : undefined
  }

  /** From here on this process publishes the thread: what it publishes is sent to peers that watch it. */
  attach(live: LiveThread): void {
    this.#remote?.attach(live)
  }

  release(threadId: string): void {
    this.#remote?.release(threadId)
  }

  isWatched(threadId: string): boolean {
    return this.#remote?.isWatched(threadId) ?? false
  }

  // Receiving

  onMessage(message: BusMessage, from: string): void {
    if (this.#runtime.closing) return
    switch (message.kind) {
      case 'hello':
        // Both may connect at the same moment.
        return this.#inBackground(Promise.resolve(this.#connecting).then(() => this.#remote?.announce(from)))
      case 'goodbye':
        this.#remote?.unwatchedBy(from)
        return this.#inBackground(this.#runtime.sweep())
      case 'mail':
        return this.#inBackground(this.#runtime.wake(message.threadId))
      case 'settled':
        return this.#inBackground(resolveRemoteWaiters(this.#runtime, message.threadId, message.read))
      case 'transferred':
        return this.#setResource(message.threadId, message.resourceId)
      case 'deleted':
        return this.#inBackground(endThreads(this.#runtime, message.threadIds))
      case 'restored':
        return this.#inBackground(endThreads(this.#runtime))
      case 'inbox':
        return this.#runtime.onInboxChange(message.resourceIds)
      case 'beside':
        return this.#runtime.sideChunks.emit(message, message.chunk)
      case 'interrupt':
        return this.#inBackground(this.#interrupt(message.threadId, message.signalId))
      case 'abort':
        return this.#abort(message, from)
      case 'aborted':
        return this.#requests.get(message.ask)?.({ aborted: message.aborted, ...(message.runId !== undefined && { runId: message.runId }) })
      case 'watch':
        return this.#remote?.watchedBy(from, message.threadIds)
      case 'unwatch':
        return this.#remote?.unwatchedBy(from, message.threadIds)
      case 'catch-up':
        return this.#remote?.catchUp(message, from)
      case 'state':
        return this.#remote?.state(message, from)
      case 'events':
        return this.#remote?.events(message, from)
    }
  }

  onLoss(): void {
    if (this.#runtime.closing) return
    // Peers may have lost messages of this process as well.
    this.#connection?.send({ kind: 'hello' })
    this.#inBackground(this.#runtime.sweep())
    this.#inBackground(this.tick())
  }

  onDisconnect(error: unknown): void {
    if (this.#runtime.closing) return
    const text =
      'other processes on this store can not be reached: aborts of their runs are rejected, and sweeps of the store find their work'
    this.#runtime.logger.warn(text, { code: 'bus_failed', error: String(error) })
  }

  onReconnect(): void {
    if (!this.#runtime.closing) this.#runtime.logger.warn('other processes on this store can be reached again')
  }

  onFailure(error: unknown): void {
    if (!this.#runtime.closing) this.#runtime.logger.warn('the bus failed and is tried again', { code: 'bus_failed', error: String(error) })
  }

  /** True while peers may exist and can't be reached. */
  get disconnected(): boolean {
    return this.#connection?.disconnected ?? false
  }

  wantsLowLatency(): boolean {
    return this.#remote?.watching === true || this.#runtime.hosts().length > 0 || this.#runtime.waiters.threadsAwaitedRemotely().length > 0
  }

  /** Finds what no message announced. Called with every sweep. */
  async tick(): Promise<void> {
    for (const threadId of this.#runtime.waiters.threadsAwaitedRemotely()) await resolveRemoteWaiters(this.#runtime, threadId)
    await this.#abandoned.check()
    await this.#applyPendingInterrupts()
    if (!this.#remote) return
    this.#remote.expire()
    this.#remote.announce()
    await this.#remote.verify()
  }

  /** Ends runs of deleted threads and obeys interrupts that no message announced, on threads that ran here at the last tick already. */
  async #applyPendingInterrupts(): Promise<void> {
    const hosts = this.#runtime.hosts()
    for (const host of hosts) {
      if (!this.#lastHosts.has(host) || !host.hasWork || this.#runtime.closing) continue
      if (!(await endIfFormer(this.#runtime, host))) await host.applyPendingInterrupts()
    }
    this.#lastHosts = new WeakSet(hosts)
  }

  #setResource(threadId: string, resourceId: string): void {
    const live = this.#runtime.liveOf(threadId)
    if (live?.resourceId !== undefined) live.resourceId = resourceId
  }

  /** The signal may have entered the run already; then there is nothing to interrupt. */
  async #interrupt(threadId: string, signalId: string): Promise<void> {
    const mail = await this.#runtime.store.getSignal({ threadId }, signalId)
    if (mail?.state === 'pending') this.#runtime.hostOf(threadId)?.interrupt(signalId)
  }

  #abort({ threadId, ask, runId, clearPending, clearUpTo }: Extract<BusMessage, { kind: 'abort' }>, from: string): void {
    const host = this.#runtime.hostOf(threadId)
    const meant = host && (runId === undefined || host.runId === undefined || host.runId === runId)
    const reason = new HeedError('aborted', 'The run was aborted.')
    const aborted = meant ? host.abort({ reason, clearPending, clearUpTo, runId }) : false
    const active = host?.runId
    this.#connection?.send({ kind: 'aborted', ask, aborted, ...(active === undefined ? {} : { runId: active }) }, from)
  }

  #inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      // The thread was deleted before the message arrived.
      if (isHeedError(error) && error.code === 'thread_not_found') return
      if (!this.#runtime.closing) this.#runtime.logger.error('a request of another process failed', { error: String(error) })
    })
  }
}
