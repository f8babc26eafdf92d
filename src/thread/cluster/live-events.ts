import type { Clock, Timer } from '../../base/clock.ts'
import type { BusConnection } from '../../bus/contract.ts'
import type { BusMessage, LiveEvent } from '../../bus/message.ts'
import type { LiveRelay, LiveThread } from '../stream/live.ts'

/** For how long events are collected, and how many, before they are sent in one message. */
const batchMs = 10
const batchEvents = 256

/** Sends the events of a thread that runs here to the processes that watch it, numbered so that they detect a gap. */
export class Relay implements LiveRelay {
  readonly #live: LiveThread
  readonly #connection: BusConnection
  readonly #clock: Clock
  #epoch: number
  /** The number of the last event that was sent. The first event of an epoch is 1, whichever process sent the epoch before. */
  #number: number
  #events: LiveEvent[] = []
  #timer: Timer | undefined

  constructor(live: LiveThread, connection: BusConnection, clock: Clock) {
    this.#live = live
    this.#connection = connection
    this.#clock = clock
    this.#epoch = live.epoch
    this.#number = live.events
    live.relay = this
  }

  onEpoch(epoch: number, events: number): void {
    this.flush()
    this.#epoch = epoch
    this.#number = events
  }

  onEvent(event: LiveEvent): void {
    this.#events.push(event)
    if (this.#events.length >= batchEvents || event.type === 'rest') return this.flush()
    this.#timer ??= this.#clock.after(batchMs, () => this.flush(), { background: true })
  }

  /** Sends one process the live state, from which it continues with the events that follow. */
  sendState(member: string, after?: string): void {
    this.flush()
    this.#connection.send({ kind: 'state', threadId: this.#live.threadId, number: this.#number, state: this.#live.state(after) }, member)
  }

  close(): void {
    this.flush()
    if (this.#live.relay === this) this.#live.relay = undefined
  }

  /** Sends the events that were collected so far. */
  flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#events.length === 0) return
    const events = this.#events
    this.#events = []
    const { threadId, resourceId } = this.#live
    this.#connection.send({
      kind: 'events', threadId, ...(resourceId === undefined ? {} : { resourceId }), epoch: this.#epoch, first: this.#number + 1, events,
    })
    this.#number += events.length
  }
}

type Events = Extract<BusMessage, { kind: 'events' }>
type State = Extract<BusMessage, { kind: 'state' }>

/**
 * A thread that is watched here and may run in another process: its events are applied in the order of their numbers. At a gap the
 * runner is asked for its state, or subscribers get a snapshot.
 */
export class Replica {
  readonly live: LiveThread
  /** The number of subscriptions here. */
  watchers = 0
  /** The process whose events are followed, their epoch, and the number of the next event. */
  #from: string | undefined
  #epoch = 0
  #next = 0
  /** The runner didn't answer: its later events don't follow from those that were applied. */
  #hasGap = false
  /** The runner was asked for its state and has not answered. */
  #stateRequested = false
  /** The epoch of the store and the cursor here, when they last differed. */
  #stalledAt: string | undefined
  /** What the store had at the last look without a bus. */
  #lastState: string | undefined
  #synced: PromiseWithResolvers<void> | undefined

  constructor(live: LiveThread) {
    this.live = live
  }

  get isStateRequested(): boolean {
    return this.#stateRequested
  }

  /** Resolves when the events of another process are followed here. */
  synced(): Promise<void> {
    this.#synced ??= Promise.withResolvers()
    return this.#synced.promise
  }

  /** Events were missed. */
  markGap(): void {
    this.#hasGap = true
    this.#stateRequested = false
  }

  /** Whether the store has changed since the last call. */
  hasChanged(state: string): boolean {
    const changed = this.#lastState !== state
    this.#lastState = state
    return changed
  }

  /** The last events of an epoch may still be on their way: they count as missed when the next call finds no progress. */
  isStalled(epoch: number): boolean {
    const { live } = this
    const at = `${epoch} ${live.epoch}.${live.index}`
    const again = this.#stalledAt === at
    this.#stalledAt = again ? undefined : at
    return again
  }

  /** This process publishes the thread from here on. */
  onPublishHere(): void {
    if (this.#hasGap) this.live.markGap()
    this.#hasGap = false
    this.#stateRequested = false
  }

  /** Applies events. Returns whether `from` has to be asked for its state, because of a gap. */
  receive({ epoch, first, events, resourceId }: Events, from: string): boolean {
    const { live } = this
    // A process that does not know yet that the thread was deleted or replaced goes on sending events of the earlier one.
    if (epoch < live.epoch || epoch < live.life) return false
    const begins = first === 1 && epoch > live.epoch
    if (!begins && (from !== this.#from || epoch !== this.#epoch || first !== this.#next)) return this.#missed(epoch, first)
    // A snapshot may have shown these already, and a requested state may never have come: subscribers start over.
    if (this.#hasGap || (begins && this.#stateRequested)) live.skip()
    this.#hasGap = false
    if (begins) {
      if (resourceId !== undefined) live.resourceId = resourceId
      live.beginEpoch(epoch)
      this.#followFrom(from, epoch)
    }
    for (const event of events) live.follow(event)
    this.#next = first + events.length
    this.#resolveSynced()
    return false
  }

  adopt({ number, state }: State, from: string): void {
    if (state.epoch < this.live.epoch || state.epoch < this.live.life) return
    if (this.#hasGap) this.live.skip()
    this.live.adopt(state)
    this.#followFrom(from, state.epoch)
    this.#next = number + 1
    this.#resolveSynced()
  }

  #followFrom(from: string, epoch: number): void {
    this.#from = from
    this.#epoch = epoch
    this.#hasGap = false
    this.#stateRequested = false
  }

  #resolveSynced(): void {
    this.#synced?.resolve()
    this.#synced = undefined
  }

  #missed(epoch: number, first: number): boolean {
    // The events were applied already, or belong to an epoch that was over when the subscription began.
    if (epoch === this.#epoch && first < this.#next) return false
    if (first === 1 && this.#from === undefined) return false
    if (this.#stateRequested) return false
    this.#stateRequested = true
    return true
  }
}
