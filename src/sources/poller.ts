import type { Clock, Timer } from '../base/clock.ts'
import { describe, HeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { JSONValue } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import { untilAborted } from '../base/promises.ts'
import type { PollTurn, SubscriptionRecord, SubscriptionStore } from '../store/contract/subscriptions.ts'
import type { PollAnswer, PollContext, SourceEvent } from './event.ts'

/** After this time without a renewal, another process may poll. */
const claimMs = 30_000
const renewMs = 10_000
/** A poll that takes longer is aborted, so that other processes can poll. */
const maxMs = 600_000

interface PollerOptions {
  sourceId: string
  interval: number
  clock: Clock
  logger: Logger
  store(): Promise<SubscriptionStore>
  /** All subscriptions of the source. */
  subscriptions(): Promise<SubscriptionRecord[]>
  poll(subscriptions: readonly SubscriptionRecord[], context: PollContext): Promise<readonly SourceEvent[] | PollAnswer>
  deliver(event: SourceEvent): Promise<number>
}

/** Polls a source at its interval: one process at a time, each from the cursor of the last poll. */
export class Poller {
  readonly #options: PollerOptions
  readonly #holder = newId()
  #timer: Timer | undefined
  #current: { over: Promise<void>; controller: AbortController } | undefined

  constructor(options: PollerOptions) {
    this.#options = options
    this.#schedule(0)
  }

  /** Resolves when the events in progress are delivered. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    this.#current?.controller.abort(new HeedError('closed', 'The source is no longer polled.'))
    await this.#current?.over
  }

  /** A poll that is due while the last one is in progress is skipped. */
  #schedule(delay: number): void {
    const { clock, interval } = this.#options
    this.#timer = clock.after(
      delay,
      () => {
        this.#schedule(interval)
        if (!this.#current) this.#begin()
      },
      { background: true },
    )
  }

  #begin(): void {
    const { sourceId, logger } = this.#options
    const controller = new AbortController()
    const over = this.#poll(controller)
      .catch((error: unknown) => {
        if (!this.#isStopped(controller)) logger.error('a source could not be polled', { source: sourceId, error: describe(error) })
      })
      .finally(() => (this.#current = undefined))
    this.#current = { over, controller }
  }

  #isStopped({ signal }: AbortController): boolean {
    return signal.reason instanceof HeedError && signal.reason.code === 'closed'
  }

  async #poll(controller: AbortController): Promise<void> {
    const { sourceId, interval, clock } = this.#options
    const subscriptions = await this.#options.subscriptions()
    if (subscriptions.length === 0) return
    const store = await this.#options.store()
    const began = clock.now()
    const claim = await store.claimPoll({ sourceId, holder: this.#holder, now: began, until: began + claimMs })
    if (!claim) return
    const release = this.#renewClaim(store, controller, began)
    let cursor: JSONValue | undefined
    try {
      cursor = await this.#deliverEvents(subscriptions, claim, controller.signal)
    } finally {
      release()
      // Timers may fire slightly early.
      await store.endPoll({
        sourceId, holder: this.#holder, nextAt: began + Math.floor(interval * 0.95), ...(cursor === undefined ? {} : { cursor }),
      })
    }
  }

  /** Returns the next cursor; undefined where an event could not be stored. */
  async #deliverEvents(
    subscriptions: readonly SubscriptionRecord[], { cursor }: PollTurn, signal: AbortSignal,
  ): Promise<JSONValue | undefined> {
    const { sourceId, logger } = this.#options
    const answer = await untilAborted(this.#options.poll(subscriptions, { ...(cursor === undefined ? {} : { cursor }), signal }), signal)
    const { events, cursor: next } = 'events' in answer ? answer : { events: answer, cursor: undefined }
    let stored = true
    for (const event of events) {
      signal.throwIfAborted()
      try {
        await this.#options.deliver(event)
      } catch (error) {
        stored &&= isPermanent(error)
        logger.error('an event of a source could not be delivered', { source: sourceId, event: event.id, error: describe(error) })
      }
    }
    return stored ? next : undefined
  }

  /** Renews the claim while the poll is in progress. Returns a function that stops this. */
  #renewClaim(store: SubscriptionStore, controller: AbortController, began: number): () => void {
    const { sourceId, clock, logger } = this.#options
    let timer: Timer | undefined
    let over = false
    const renew = async () => {
      const now = clock.now()
      if (now - began >= maxMs) return controller.abort(new HeedError('aborted', `The poll took longer than ${maxMs / 60_000} minutes.`))
      try {
        const claim = await store.claimPoll({ sourceId, holder: this.#holder, now, until: now + claimMs })
        if (!claim) controller.abort(new HeedError('fenced', 'Another process polls the source now.'))
      } catch (error) {
        logger.warn('the claim of a source could not be renewed', { source: sourceId, error: describe(error) })
      }
      if (!over && !controller.signal.aborted) wait()
    }
    const wait = () => {
      timer = clock.after(renewMs, () => void renew(), { background: true })
    }
    wait()
    return () => {
      over = true
      timer?.cancel()
    }
  }
}

/** The event itself is invalid: a retry would fail again. */
function isPermanent(error: unknown): boolean {
  return error instanceof HeedError && error.code === 'invalid_argument'
}
