import type { Timer } from '../base/clock.ts'
import { describe } from '../base/errors.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { isClosed } from '../thread/runtime/sweeper.ts'
import { cronOf, type CronTimes } from './timing.ts'

/** A clock that was set forward makes timers late: nothing that is due is slept over for longer. */
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
  /** Where it is the limit, there may be more. */
  taken: number
  /** How much of it was to be done: nothing on a thread that is still busy. */
  done: number
}

export interface DispatchWork {
  /** Takes up to `limit` of what is due and does it. */
  dispatch(limit: number): Promise<Dispatched>
  nextDue(): Promise<number | undefined>
}

/** Calls when something is due, and not otherwise: one timer, for the next of it. */
export class Dispatcher {
  readonly #runtime: ThreadRuntime
  readonly #settings: DispatchSettings
  readonly #work: DispatchWork
  readonly #pending = new Set<Promise<void>>()
  readonly #cron: CronTimes | undefined
  #timer: { at: number; timer: Timer } | undefined
  #cronTimer: Timer | undefined
  /** When it looks next. A timer may be shorter. */
  #cronAt: number | undefined
  #looking: Promise<number> | undefined
  /** Somebody asked during the look. */
  #again = false
  #closed = false

  constructor(runtime: ThreadRuntime, settings: DispatchSettings, work: DispatchWork) {
    this.#runtime = runtime
    this.#settings = settings
    this.#work = work
    if (settings.cron !== undefined) this.#cron = cronOf(settings.cron)
  }

  /** Something is due then. */
  expect(at: number): void {
    if (this.#closed || !this.#settings.enabled || (this.#timer && this.#timer.at <= at)) return
    this.#timer?.timer.cancel()
    const { clock } = this.#runtime
    const wait = Math.min(longestSleepMs, Math.max(0, at - clock.now()))
    const timer = clock.after(wait, () => {
      this.#timer = undefined
      if (clock.now() < at) this.expect(at)
      else this.track(this.look().then(() => {}), 'dispatching failed; it is tried again')
    }, { background: true })
    this.#timer = { at, timer }
  }

  /** Does all that is due, then sets the timer for the next. Whoever asks meanwhile shares it, and has it look once more: what fell due since may be behind it. */
  look(): Promise<number> {
    if (this.#closed || !this.#settings.enabled) return Promise.resolve(0)
    if (this.#looking) this.#again = true
    this.#looking ??= this.#look()
    return this.#looking
  }

  /** One round, also where this process doesn't dispatch by itself. */
  async once(limit: number): Promise<number> {
    if (this.#closed) return 0
    const { done } = await this.#work.dispatch(limit)
    await this.findNext()
    return done
  }

  /** Work that nobody awaits, but a close does. */
  track(work: Promise<void>, message: string): void {
    void this.tracked(work, message)
  }

  /** The same for whoever wants to know when it is over. Never rejects. */
  tracked(work: Promise<void>, message: string): Promise<void> {
    const tracked = work.catch((error: unknown) => {
      if (!this.#endedBy(error)) this.#runtime.logger.error(message, { error: describe(error) })
    }).finally(() => this.#pending.delete(tracked))
    this.#pending.add(tracked)
    return tracked
  }

  /** Resolves when what was tracked until now is done. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async close(): Promise<void> {
    this.#end()
    await Promise.all([...this.#pending, this.#looking?.catch(() => {})])
  }

  async #look(): Promise<number> {
    let total = 0
    const { batchSize } = this.#settings
    try {
      do {
        this.#again = false
        const { taken, done } = await this.#work.dispatch(batchSize)
        total += done
        this.#again ||= taken >= batchSize
        if (!this.#again) await this.findNext()
      } while (this.#again && !this.#closed)
    } catch (error) {
      if (!this.#endedBy(error)) this.expect(this.#runtime.clock.now() + retryMs)
      throw error
    } finally {
      this.#looking = undefined
    }
    return total
  }

  /** It doesn't outlive its store: where that was closed there is nothing to be dispatched, nor to be told of. */
  #endedBy(error: unknown): boolean {
    if (isClosed(error)) this.#end()
    return this.#closed || this.#runtime.closing
  }

  #end(): void {
    this.#closed = true
    this.#timer?.timer.cancel()
    this.#cronTimer?.cancel()
  }

  /** Sets the timer for what is due next. A read, where nothing is. */
  async findNext(): Promise<void> {
    this.#scheduleCron()
    const next = await this.#work.nextDue()
    if (next !== undefined) this.expect(next)
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
        this.track(this.look().then(() => {}), 'the regular dispatch failed')
      }
      this.#scheduleCron()
    }, { background: true })
  }
}
