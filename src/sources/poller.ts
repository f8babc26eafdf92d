import type { Clock, Timer } from '../base/clock.ts'
import { describe, HeedError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { JSONValue } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { PollTurn, SubscriptionRecord, SubscriptionStore } from '../store/contract/subscriptions.ts'
import type { PollAnswer, PollContext, SourceEvent } from './event.ts'

/** A process that dies while it asks leaves its turn to the next after this. */
const turnMs = 30_000
const renewMs = 10_000
/** Whoever takes longer is given up, or nobody else would ever ask. */
const longestMs = 600_000

export interface Asked {
  sourceId: string
  interval: number
  clock: Clock
  logger: Logger
  store(): Promise<SubscriptionStore>
  /** Everything that somebody subscribed to. */
  subscriptions(): Promise<SubscriptionRecord[]>
  poll(subscriptions: readonly SubscriptionRecord[], context: PollContext): Promise<readonly SourceEvent[] | PollAnswer>
  deliver(event: SourceEvent): Promise<number>
}

/** Asks a source at an even pace: one process at a time, and each time from where the last one ended. */
export class Asking {
  readonly #asked: Asked
  readonly #holder = newId()
  #timer: Timer | undefined
  #turn: { over: Promise<void>; controller: AbortController } | undefined

  constructor(asked: Asked) {
    this.#asked = asked
    this.#schedule(0)
  }

  /** What is being delivered is waited for. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    this.#turn?.controller.abort(new HeedError('closed', 'The source is no longer asked.'))
    await this.#turn?.over
  }

  /** A turn that comes while the last one is still at work is left out. */
  #schedule(delay: number): void {
    const { clock, interval } = this.#asked
    this.#timer = clock.after(delay, () => {
      this.#schedule(interval)
      if (!this.#turn) this.#begin()
    }, { background: true })
  }

  #begin(): void {
    const { sourceId, logger } = this.#asked
    const controller = new AbortController()
    const over = this.#ask(controller)
      .catch((error: unknown) => {
        if (!this.#isStopped(controller)) logger.error('a source could not be asked', { source: sourceId, error: describe(error) })
      })
      .finally(() => (this.#turn = undefined))
    this.#turn = { over, controller }
  }

  #isStopped({ signal }: AbortController): boolean {
    return signal.reason instanceof HeedError && signal.reason.code === 'closed'
  }

  async #ask(controller: AbortController): Promise<void> {
    const { sourceId, interval, clock } = this.#asked
    const subscriptions = await this.#asked.subscriptions()
    if (subscriptions.length === 0) return
    const store = await this.#asked.store()
    const began = clock.now()
    const turn = await store.claimPoll({ sourceId, holder: this.#holder, now: began, until: began + turnMs })
    if (!turn) return
    const release = this.#keep(store, controller, began)
    let cursor: JSONValue | undefined
    try {
      cursor = await this.#hear(subscriptions, turn, controller.signal)
    } finally {
      release()
      // A timer may be a little early.
      await store.endPoll({ sourceId, holder: this.#holder, nextAt: began + Math.floor(interval * 0.95), ...(cursor === undefined ? {} : { cursor }) })
    }
  }

  /** Answers where to go on from; nothing while something of it is not stored. */
  async #hear(subscriptions: readonly SubscriptionRecord[], { cursor }: PollTurn, signal: AbortSignal): Promise<JSONValue | undefined> {
    const { sourceId, logger } = this.#asked
    const answer = await orAborted(this.#asked.poll(subscriptions, { ...(cursor === undefined ? {} : { cursor }), signal }), signal)
    const { events, cursor: next } = 'events' in answer ? answer : { events: answer, cursor: undefined }
    let stored = true
    for (const event of events) {
      signal.throwIfAborted()
      try {
        await this.#asked.deliver(event)
      } catch (error) {
        stored &&= isLost(error)
        logger.error('an event of a source could not be delivered', { source: sourceId, event: event.id, error: describe(error) })
      }
    }
    return stored ? next : undefined
  }

  /** Keeps the turn for as long as it takes. Answers how to stop that. */
  #keep(store: SubscriptionStore, controller: AbortController, began: number): () => void {
    const { sourceId, clock, logger } = this.#asked
    let timer: Timer | undefined
    let over = false
    const renew = async () => {
      const now = clock.now()
      if (now - began >= longestMs) return controller.abort(new HeedError('aborted', `It took longer than ${longestMs / 60_000} minutes.`))
      try {
        const turn = await store.claimPoll({ sourceId, holder: this.#holder, now, until: now + turnMs })
        if (!turn) controller.abort(new HeedError('fenced', 'Another process asks it now.'))
      } catch (error) {
        logger.warn('the turn to ask a source could not be renewed', { source: sourceId, error: describe(error) })
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

/** It is wrong in itself, and will be wrong again: nothing waits for it. */
function isLost(error: unknown): boolean {
  return error instanceof HeedError && error.code === 'invalid_argument'
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
