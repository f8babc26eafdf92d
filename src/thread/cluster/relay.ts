import type { LiveEvent } from '../../bus/message.ts'
import type { Seat } from '../../bus/contract.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { LiveThread } from '../watch/live.ts'
import type { LiveRelay } from '../watch/live-relay.ts'

/** For how long events are collected, and how many, before they are told together. */
const batchMs = 10
const batchEvents = 256

/** Tells processes that watch a thread what happens on it here, numbered, so that they notice when something is missing. */
export class Relay implements LiveRelay {
  readonly #live: LiveThread
  readonly #seat: Seat
  readonly #clock: Clock
  #epoch: number
  /** The number of the last event that was told. The first of an epoch is 1, and only that one, whoever told those before. */
  #number: number
  #events: LiveEvent[] = []
  #timer: Timer | undefined

  constructor(live: LiveThread, seat: Seat, clock: Clock) {
    this.#live = live
    this.#seat = seat
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

  /** Tells one process everything from which it can go on with what follows. */
  tell(member: string, after?: string): void {
    this.flush()
    this.#seat.say({ kind: 'state', threadId: this.#live.threadId, number: this.#number, state: this.#live.state(after) }, member)
  }

  close(): void {
    this.flush()
    if (this.#live.relay === this) this.#live.relay = undefined
  }

  /** Tells what was collected so far. */
  flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (this.#events.length === 0) return
    const events = this.#events
    this.#events = []
    const { threadId, resourceId } = this.#live
    this.#seat.say({ kind: 'events', threadId, ...(resourceId === undefined ? {} : { resourceId }), epoch: this.#epoch, first: this.#number + 1, events })
    this.#number += events.length
  }
}
