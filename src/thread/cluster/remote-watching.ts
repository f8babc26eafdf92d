import type { BusConnection } from '../../bus/contract.ts'
import type { BusMessage } from '../../bus/message.ts'
import { HeedError } from '../../base/errors.ts'
import type { LiveThread } from '../stream/live.ts'
import { Relay, Replica } from './live-events.ts'
import type { ThreadRow } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** How long a process counts as watching a thread after its last `watch` message, in sweeps. */
const watchSweeps = 6
/** How many threads are named in one message. */
const page = 500
/** How many threads that are watched elsewhere are remembered. Watchers of further ones read the store. */
const watchedLimit = 100_000
/** How long to wait for a runner's answer before a subscription begins with what is stored. */
const answerMs = 2_000

type Of<Kind extends BusMessage['kind']> = Extract<BusMessage, { kind: Kind }>

/** The name on the bus of the process that a lease names. */
export function memberOf(owner: string): string {
  return owner.split('~', 1)[0] ?? owner
}

/** Threads that run in one process and are watched in another: relays send their events, replicas follow them. */
export class RemoteWatching {
  readonly #runtime: ThreadRuntime
  readonly #connection: BusConnection
  readonly #withTimeout: (promise: Promise<void>) => Promise<void>
  /** The processes that watch a thread, and until when that is believed. */
  readonly #watched = new Map<string, Map<string, number>>()
  readonly #relays = new Map<string, Relay>()
  /** The threads that this process publishes now. A host that waits for its turn does not publish yet. */
  readonly #published = new Set<string>()
  /** The threads that are watched here. */
  readonly #replicas = new Map<string, Replica>()

  /** `soon`: bounds the time that a promise of the bus is awaited. */
  constructor(runtime: ThreadRuntime, connection: BusConnection, soon: (promise: Promise<void>) => Promise<void>) {
    this.#runtime = runtime
    this.#connection = connection
    this.#withTimeout = soon
  }

  get watching(): boolean {
    return this.#replicas.size > 0
  }

  // Watching here

  /** A subscription begins here, wherever the thread runs. Resolves when peers can know of it. */
  async watch(live: LiveThread): Promise<void> {
    const { threadId } = live
    let replica = this.#replicas.get(threadId)
    if (!replica) {
      this.#replicas.set(threadId, (replica = new Replica(live)))
      this.#connection.send({ kind: 'watch', threadIds: [threadId] })
    }
    replica.watchers++
    if (replica.watchers === 1 && this.#connection.hasPeers) await this.#withTimeout(this.#connection.flush())
  }

  unwatch(threadId: string): void {
    const replica = this.#replicas.get(threadId)
    if (!replica || --replica.watchers > 0) return
    this.#replicas.delete(threadId)
    this.#connection.send({ kind: 'unwatch', threadIds: [threadId] })
  }

  /** Waits until the events of `owner` on the thread are followed here. False when it doesn't answer. */
  async follow(threadId: string, owner: string | undefined, after: string | undefined): Promise<boolean> {
    const replica = this.#replicas.get(threadId)
    if (!replica || !this.#connection.hasPeers || this.#connection.disconnected) return false
    const { clock } = this.#runtime
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = clock.after(answerMs, () => resolve(false))
    this.#connection.send({ kind: 'catch-up', threadId, ...(after === undefined ? {} : { after }) }, owner)
    const answered = await Promise.race([replica.synced().then(() => true), late])
    timer.cancel()
    return answered
  }

  /** The runner of a thread didn't answer: its later events don't follow from what is known here. */
  markGap(threadId: string): void {
    this.#replicas.get(threadId)?.markGap()
  }

  /** Sends to all peers, or to one, what is watched here. A new peer gets an empty list as well: it waits for an answer. */
  announce(to?: string): void {
    const threadIds = [...this.#replicas.keys()]
    if (threadIds.length === 0 && to !== undefined) this.#connection.send({ kind: 'watch', threadIds }, to)
    for (let from = 0; from < threadIds.length; from += page) {
      this.#connection.send({ kind: 'watch', threadIds: threadIds.slice(from, from + page) }, to)
    }
  }

  events(message: Of<'events'>, from: string): void {
    const replica = this.#replicas.get(message.threadId)
    if (!replica || !this.#acceptsEvents(message.threadId, message.epoch)) return
    if (replica.receive(message, from)) this.#requestState(replica, from)
  }

  state(message: Of<'state'>, from: string): void {
    if (this.#acceptsEvents(message.threadId, message.state.epoch)) this.#replicas.get(message.threadId)?.adopt(message, from)
  }

  /**
   * Whether events of another process are applied. A later epoch means that it has claimed the thread, or one that follows it after a
   * deletion: the run here ends before they are, so that none of its chunks gets a place among them.
   */
  #acceptsEvents(threadId: string, epoch: number): boolean {
    const host = this.#runtime.hostOf(threadId)
    if (!host) return true
    // Until the run here begins, the last events of the runner before it are applied.
    if (epoch < host.fence.epoch && !this.#published.has(threadId)) return true
    if (epoch <= host.fence.epoch) return false
    this.#runtime.endHostsBefore(threadId, epoch, new HeedError('fenced', `Thread ${threadId} was claimed by another process.`))
    this.#runtime.resolveWaiters(threadId)
    return true
  }

  #requestState({ live }: Replica, whom: string): void {
    const after = live.epoch === 0 ? {} : { after: `${live.epoch}.${live.index}` }
    this.#connection.send({ kind: 'catch-up', threadId: live.threadId, ...after }, whom)
  }

  /** Compares the replicas with the store. Where events were missed, subscribers get a snapshot. */
  async verify(): Promise<void> {
    if (!this.#connection.hasPeers) return
    for (const [threadId, replica] of this.#replicas) {
      if (this.#runtime.hostOf(threadId)) continue
      const { live } = replica
      const before = `${live.epoch}.${live.index}`
      const thread = await this.#runtime.store.getThread({ threadId })
      if (live.epoch > 0 && (!thread || thread.epoch > live.epoch)) live.beginLife(await this.#runtime.store.lifeOf(threadId))
      if (thread && live.resourceId !== undefined) live.resourceId = thread.resourceId
      // Events that arrived meanwhile are newer than the answer of the store.
      if (!thread || this.#runtime.closing || this.#runtime.hostOf(threadId) || before !== `${live.epoch}.${live.index}`) continue
      if (this.#connection.disconnected) {
        await this.#compareWithRows(replica, thread)
        continue
      }
      if (thread.status === 'running') {
        if (thread.owner === undefined || thread.owner === this.#runtime.owner) continue
        if (thread.epoch > live.epoch || replica.isStateRequested) this.#requestState(replica, memberOf(thread.owner))
      } else if ((thread.epoch > live.epoch || live.running) && replica.isStalled(thread.epoch)) {
        live.endEpoch(thread.epoch, thread.status === 'suspended', this.#runtime.clock.now())
      }
    }
  }

  /** No events arrive: subscribers get a snapshot whenever the rows of the thread have changed. */
  async #compareWithRows(replica: Replica, thread: ThreadRow): Promise<void> {
    const { rows: [newest] } = await this.#runtime.store.listRows({ threadId: thread.id }, { limit: 1 })
    if (!replica.hasChanged(`${thread.status} ${thread.epoch} ${newest?.id ?? ''}`)) return
    if (thread.status === 'running') {
      replica.markGap()
      replica.live.skip()
    } else replica.live.endEpoch(thread.epoch, thread.status === 'suspended', this.#runtime.clock.now())
  }

  // Watched elsewhere

  watchedBy(member: string, threadIds: readonly string[]): void {
    const until = this.#runtime.clock.now() + watchSweeps * this.#runtime.sweepMs
    for (const threadId of threadIds) {
      let members = this.#watched.get(threadId)
      if (!members) {
        if (this.#watched.size >= watchedLimit) continue
        this.#watched.set(threadId, (members = new Map()))
      }
      const known = members.has(member)
      members.set(member, until)
      const host = known ? undefined : this.#runtime.hostOf(threadId)
      // A run that is about to begin sends all events of its epoch by itself.
      if (host && this.#published.has(threadId)) this.#relay(host.live)?.sendState(member)
    }
  }

  unwatchedBy(member: string, threadIds: Iterable<string> = this.#watched.keys()): void {
    for (const threadId of threadIds) {
      const members = this.#watched.get(threadId)
      if (!members?.delete(member) || members.size > 0) continue
      this.#watched.delete(threadId)
      this.#closeRelay(threadId)
    }
  }

  /** Forgets processes that have not repeated their `watch` message for long. */
  expire(): void {
    const now = this.#runtime.clock.now()
    for (const [threadId, members] of this.#watched) {
      for (const [member, until] of members) if (until < now) this.unwatchedBy(member, [threadId])
    }
  }

  /** From here on this process publishes the thread: its events are sent to the processes that watch it. */
  attach(live: LiveThread): void {
    this.#published.add(live.threadId)
    this.#replicas.get(live.threadId)?.onPublishHere()
    if (this.#watched.has(live.threadId)) this.#relay(live)
  }

  isWatched(threadId: string): boolean {
    return this.#watched.has(threadId)
  }

  /** This process no longer publishes the thread. */
  release(threadId: string): void {
    this.#published.delete(threadId)
    this.#closeRelay(threadId)
  }

  #closeRelay(threadId: string): void {
    this.#relays.get(threadId)?.close()
    this.#relays.delete(threadId)
  }

  /** Answers a process that missed events. The process that ran the thread last may have them as well. */
  catchUp({ threadId, after }: Of<'catch-up'>, from: string): void {
    const host = this.#runtime.hostOf(threadId)
    if (host) return this.#relay(host.live)?.sendState(from, after)
    const live = this.#runtime.liveOf(threadId)
    if (!live || after === undefined || live.epoch === 0 || live.running || live.after(after) === undefined) return
    this.#connection.send({ kind: 'state', threadId, number: 0, state: live.state(after) }, from)
  }

  #relay(live: LiveThread): Relay | undefined {
    if (live.closed) return undefined
    let relay = this.#relays.get(live.threadId)
    if (!relay || live.relay !== relay) {
      relay?.close()
      this.#relays.set(live.threadId, (relay = new Relay(live, this.#connection, this.#runtime.clock)))
    }
    return relay
  }

  close(): void {
    for (const relay of this.#relays.values()) relay.close()
    this.#relays.clear()
    this.#published.clear()
    this.#watched.clear()
    this.#replicas.clear()
  }
}
