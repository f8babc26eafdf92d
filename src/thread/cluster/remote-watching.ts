import type { Seat } from '../../bus/contract.ts'
import type { BusMessage } from '../../bus/message.ts'
import { HeedError } from '../../base/errors.ts'
import type { LiveThread } from '../watch/live.ts'
import { Relay } from './relay.ts'
import { Replica } from './replica.ts'
import type { ThreadRow } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** How long a process counts as watching a thread after it last said so, in sweeps. */
const watchSweeps = 6
/** How many threads are told of in one message. */
const page = 500
/** How many threads are remembered as watched elsewhere. Watchers of others find out from the store. */
const watchedLimit = 100_000
/** How long a runner is waited for before watching begins with what is stored. */
const answerMs = 2_000

type Of<Kind extends BusMessage['kind']> = Extract<BusMessage, { kind: Kind }>

/** Threads that run in one process and are watched in another: who tells, and who follows. */
export class RemoteWatching {
  readonly #runtime: ThreadRuntime
  readonly #seat: Seat
  /** Who watches elsewhere, by thread, and until when that is believed. */
  readonly #watched = new Map<string, Map<string, number>>()
  readonly #relays = new Map<string, Relay>()
  /** What is watched here. */
  readonly #replicas = new Map<string, Replica>()

  constructor(runtime: ThreadRuntime, seat: Seat) {
    this.#runtime = runtime
    this.#seat = seat
  }

  get watching(): boolean {
    return this.#replicas.size > 0
  }

  // Watching here

  /** Somebody here watches a thread, wherever it runs. Resolves when others can know. */
  async watch(live: LiveThread): Promise<void> {
    const { threadId } = live
    let replica = this.#replicas.get(threadId)
    if (!replica) {
      this.#replicas.set(threadId, (replica = new Replica(live)))
      this.#seat.say({ kind: 'watch', threadIds: [threadId] })
    }
    replica.watchers++
    if (replica.watchers === 1 && this.#seat.company) await this.#seat.settle()
  }

  unwatch(threadId: string): void {
    const replica = this.#replicas.get(threadId)
    if (!replica || --replica.watchers > 0) return
    this.#replicas.delete(threadId)
    this.#seat.say({ kind: 'unwatch', threadIds: [threadId] })
  }

  /** Waits until what `owner` says on the thread is followed here. False when it doesn't answer. */
  async follow(threadId: string, owner: string | undefined, after: string | undefined): Promise<boolean> {
    const replica = this.#replicas.get(threadId)
    if (!replica || !this.#seat.company || this.#seat.mute) return false
    const { clock } = this.#runtime
    const { promise: late, resolve } = Promise.withResolvers<boolean>()
    const timer = clock.after(answerMs, () => resolve(false))
    this.#seat.say({ kind: 'catch-up', threadId, ...(after === undefined ? {} : { after }) }, owner)
    const answered = await Promise.race([replica.synced().then(() => true), late])
    timer.cancel()
    return answered
  }

  /** The runner of a thread didn't answer: what it says later doesn't follow from what is known here. */
  tear(threadId: string): void {
    this.#replicas.get(threadId)?.tear()
  }

  /** Tells everyone, or one, what is watched here. Whoever is new is told also that it is nothing. */
  announce(to?: string): void {
    const threadIds = [...this.#replicas.keys()]
    if (threadIds.length === 0 && to !== undefined) this.#seat.say({ kind: 'watch', threadIds }, to)
    for (let from = 0; from < threadIds.length; from += page) this.#seat.say({ kind: 'watch', threadIds: threadIds.slice(from, from + page) }, to)
  }

  events(message: Of<'events'>, from: string): void {
    const replica = this.#replicas.get(message.threadId)
    if (!replica || !this.#yields(message.threadId, message.epoch)) return
    if (replica.hear(message, from)) this.#ask(replica, from)
  }

  state(message: Of<'state'>, from: string): void {
    if (this.#yields(message.threadId, message.state.epoch)) this.#replicas.get(message.threadId)?.adopt(message, from)
  }

  /** Whoever runs the thread here and hears of a later epoch has lost it. */
  #yields(threadId: string, epoch: number): boolean {
    const host = this.#runtime.hostOf(threadId)
    if (!host) return true
    if (epoch <= host.fence.epoch) return false
    host.abort({ reason: new HeedError('fenced', `Thread ${threadId} was taken by another process.`), clearPending: false })
    return true
  }

  #ask({ live }: Replica, whom: string): void {
    const after = live.epoch === 0 ? {} : { after: `${live.epoch}.${live.index}` }
    this.#seat.say({ kind: 'catch-up', threadId: live.threadId, ...after }, whom)
  }

  /** Compares what is believed here with the store. Where something was missed, watchers start over. */
  async verify(): Promise<void> {
    if (!this.#seat.company) return
    for (const [threadId, replica] of this.#replicas) {
      if (this.#runtime.hostOf(threadId)) continue
      const { live } = replica
      const before = `${live.epoch}.${live.index}`
      const thread = await this.#runtime.store.getThread({ threadId })
      if (thread && live.resourceId !== undefined) live.resourceId = thread.resourceId
      // What was told meanwhile is newer than the answer.
      if (!thread || this.#runtime.closing || this.#runtime.hostOf(threadId) || before !== `${live.epoch}.${live.index}`) continue
      if (this.#seat.mute) {
        await this.#lookAt(replica, thread)
        continue
      }
      if (thread.status === 'running') {
        if (thread.owner === undefined || thread.owner === this.#runtime.owner) continue
        if (thread.epoch > live.epoch || replica.asked) this.#ask(replica, thread.owner)
      } else if ((thread.epoch > live.epoch || live.running) && replica.waitedInVain(thread.epoch)) {
        live.settle(thread.epoch, thread.status === 'suspended', this.#runtime.clock.now())
      }
    }
  }

  /** Nobody can tell what happens on a thread: what its rows say is told by snapshots, whenever they changed. */
  async #lookAt(replica: Replica, thread: ThreadRow): Promise<void> {
    const { rows: [newest] } = await this.#runtime.store.listRows({ threadId: thread.id }, { limit: 1 })
    if (!replica.found(`${thread.status} ${thread.epoch} ${newest?.id ?? ''}`)) return
    if (thread.status === 'running') {
      replica.tear()
      replica.live.skip()
    } else replica.live.settle(thread.epoch, thread.status === 'suspended', this.#runtime.clock.now())
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
      if (host) this.#relay(host.live)?.tell(member)
    }
  }

  unwatchedBy(member: string, threadIds: Iterable<string> = this.#watched.keys()): void {
    for (const threadId of threadIds) {
      const members = this.#watched.get(threadId)
      if (!members?.delete(member) || members.size > 0) continue
      this.#watched.delete(threadId)
      this.release(threadId)
    }
  }

  /** Forgets those who have not said for long that they watch. */
  expire(): void {
    const now = this.#runtime.clock.now()
    for (const [threadId, members] of this.#watched) {
      for (const [member, until] of members) if (until < now) this.unwatchedBy(member, [threadId])
    }
  }

  /** From here on, what happens on this thread happens here: whoever watches elsewhere is told. */
  attach(live: LiveThread): void {
    if (this.#seat.company) this.#seat.listen()
    this.#replicas.get(live.threadId)?.mend()
    if (this.#watched.has(live.threadId)) this.#relay(live)
  }

  isWatched(threadId: string): boolean {
    if (this.#seat.company) this.#seat.listen()
    return this.#watched.has(threadId)
  }

  /** What happens on this thread no longer happens here. */
  release(threadId: string): void {
    this.#relays.get(threadId)?.close()
    this.#relays.delete(threadId)
  }

  /** Answers a process that missed something. Whoever ran the thread last may know as well. */
  catchUp({ threadId, after }: Of<'catch-up'>, from: string): void {
    const host = this.#runtime.hostOf(threadId)
    if (host) return this.#relay(host.live)?.tell(from, after)
    const live = this.#runtime.liveOf(threadId)
    if (!live || after === undefined || live.epoch === 0 || live.running || live.after(after) === undefined) return
    this.#seat.say({ kind: 'state', threadId, number: 0, state: live.state(after) }, from)
  }

  #relay(live: LiveThread): Relay | undefined {
    if (live.closed) return undefined
    let relay = this.#relays.get(live.threadId)
    if (!relay || live.relay !== relay) {
      relay?.close()
      this.#relays.set(live.threadId, (relay = new Relay(live, this.#seat, this.#runtime.clock)))
    }
    return relay
  }

  close(): void {
    for (const relay of this.#relays.values()) relay.close()
    this.#relays.clear()
    this.#watched.clear()
    this.#replicas.clear()
  }
}
