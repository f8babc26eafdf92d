import type { LiveEvent } from '../../bus/message.ts'
import type { BusConnection } from '../../bus/contract.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { LiveThread, LiveRelay } from '../watch/live.ts'

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

  entered(epoch: number): void {
    this.flush()
    this.#epoch = epoch
    this.#number = 0
  }

  happened(event: LiveEvent): void {
    this.#events.push(event)
    if (this.#events.length >= batchEvents || event.type === 'rest') return this.flush()
    this.#timer ??= this.#clock.after(batchMs, () => this.flush(), { background: true })
  }

  /** Sends one process the live state, from which it continues with the events that follow. */
  tell(member: string, after?: string): void {
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
