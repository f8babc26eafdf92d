import type { Timer } from '../base/clock.ts'
import { describe } from '../base/errors.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { isClosed } from '../thread/runtime/sweeper.ts'
import { cronOf, type CronTimes } from './timing.ts'

/** Timers are late when the clock is set forward: due work waits no longer than this. */
const longestSleepMs = 60_000
const retryMs = 5_000

/** How long claimed work stays hidden from other processes. */
export const claimMs = 30_000

export interface DispatchSettings {
  /** Whether this process dispatches by itself. Otherwise only `heed.tick()` does. */
  enabled: boolean
  /** When this process dispatches besides the due times, to find what a crashed process left. */
  cron: string | undefined
  /** How many records are claimed at once. */
  batchSize: number
}

export interface Dispatched {
  /** When it equals the limit, there may be more. */
  taken: number
  /** How much of it was sent: nothing for a thread that is still active. */
  done: number
}

interface DispatchWork {
  /** Claims up to `limit` due records and handles them. */
  dispatch(limit: number): Promise<Dispatched>
  nextDue(): Promise<number | undefined>
}

/** Dispatches work when it is due, by one timer for the next due time. */
export class Dispatcher {
  readonly #runtime: ThreadRuntime
  readonly #settings: DispatchSettings
  readonly #work: DispatchWork
  readonly #pending = new Set<Promise<void>>()
  readonly #cron: CronTimes | undefined
  #timer: { at: number; timer: Timer } | undefined
  #cronTimer: Timer | undefined
  /** The next time of the cron expression. The timer may be shorter. */
  #cronAt: number | undefined
  #dispatching: Promise<number> | undefined
  /** A dispatch was requested during the current one. */
  #again = false
  #closed = false

  constructor(runtime: ThreadRuntime, settings: DispatchSettings, work: DispatchWork) {
    this.#runtime = runtime
    this.#settings = settings
    this.#work = work
    if (settings.cron !== undefined) this.#cron = cronOf(settings.cron)
  }

  /** Dispatches at this time. */
  wakeAt(at: number): void {
    if (this.#closed || !this.#settings.enabled || (this.#timer && this.#timer.at <= at)) return
    this.#timer?.timer.cancel()
    const { clock } = this.#runtime
    const wait = Math.min(longestSleepMs, Math.max(0, at - clock.now()))
    const timer = clock.after(wait, () => {
      this.#timer = undefined
      if (clock.now() < at) this.wakeAt(at)
      else this.track(this.dispatchAll().then(() => {}), 'a dispatch failed; it is retried')
    }, { background: true })
    this.#timer = { at, timer }
  }

  /**
   * Dispatches all due work, then sets the timer for the next. A call during a dispatch shares it and makes it repeat, since work may have
   * become due behind it.
   */
  dispatchAll(): Promise<number> {
    if (this.#closed || !this.#settings.enabled) return Promise.resolve(0)
    if (this.#dispatching) this.#again = true
    this.#dispatching ??= this.#dispatchAll()
    return this.#dispatching
  }

  /** One round, also where this process does not dispatch by itself. */
  async dispatchOnce(limit: number): Promise<number> {
    if (this.#closed) return 0
    const { done } = await this.#work.dispatch(limit)
    await this.scheduleNext()
    return done
  }

  /** Work that only a close waits for. Failures are logged. */
  track(work: Promise<void>, message: string): void {
    void this.tracked(work, message)
  }

  /** The same; resolves when the work is over. Never rejects. */
  tracked(work: Promise<void>, message: string): Promise<void> {
    const tracked = work.catch((error: unknown) => {
      if (!this.#isClosedBy(error)) this.#runtime.logger.error(message, { error: describe(error) })
    }).finally(() => this.#pending.delete(tracked))
    this.#pending.add(tracked)
    return tracked
  }

  /** Resolves when the tracked work is done. */
  async whenIdle(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async close(): Promise<void> {
    this.#stop()
    await Promise.all([...this.#pending, this.#dispatching?.catch(() => {})])
  }

  async #dispatchAll(): Promise<number> {
    let total = 0
    const { batchSize } = this.#settings
    try {
      do {
        this.#again = false
        const { taken, done } = await this.#work.dispatch(batchSize)
        total += done
        this.#again ||= taken >= batchSize
        if (!this.#again) await this.scheduleNext()
      } while (this.#again && !this.#closed)
    } catch (error) {
      if (!this.#isClosedBy(error)) this.wakeAt(this.#runtime.clock.now() + retryMs)
      throw error
    } finally {
      this.#dispatching = undefined
    }
    return total
  }

  /** A dispatcher ends with its store: after a close nothing is dispatched or logged. */
  #isClosedBy(error: unknown): boolean {
    if (isClosed(error)) this.#stop()
    return this.#closed || this.#runtime.closing
  }

  #stop(): void {
    this.#closed = true
    this.#timer?.timer.cancel()
    this.#cronTimer?.cancel()
  }

  /** Sets the timer for the next due time. One read where nothing is due. */
  async scheduleNext(): Promise<void> {
    this.#scheduleCron()
    const next = await this.#work.nextDue()
    if (next !== undefined) this.wakeAt(next)
  }

  #scheduleCron(): void {
    if (!this.#cron || this.#cronTimer || this.#closed || !this.#settings.enabled) return
    const { clock } = this.#runtime
    this.#cronAt ??= this.#cron.nextAfter(clock.now())
    const at = this.#cronAt
    if (at === undefined) return
    this.#cronTimer = clock.after(Math.min(longestSleepMs, Math.max(1, at - clock.now())), () => {
      this.#cronTimer = undefined
      if (clock.now() >= at) {
        this.#cronAt = undefined
        this.track(this.dispatchAll().then(() => {}), 'the regular dispatch failed')
      }
      this.#scheduleCron()
    }, { background: true })
  }
}
