import { systemClock, type Timer } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import { isBusy } from './failure.ts'

/** What the writer needs of a connection: transactions, of which one at a time is open. */
export interface Transactions {
  begin(): void
  commit(): void
  rollback(): void
  /** The error that callers get. */
  failure(error: unknown): Error
}

export interface WriteOptions<Result> {
  first?: boolean
  last?: ((result: Result) => Result) | undefined
}

const none = {}

interface Job {
  work(): unknown
  /** The last step of the job, after the work of all jobs that share its transaction. It answers the result. */
  last: ((result: unknown) => unknown) | undefined
  result: unknown
  resolve(result: unknown): void
  reject(error: unknown): void
  /** Set after it was in a transaction that failed: it gets one of its own, so that it harms no neighbor. */
  alone: boolean
}

/** A transaction holds so many jobs, or as many as are expected to be committed in this time: the event loop waits for it. */
const batchJobs = 256
const batchMs = 2
const maxQueued = 100_000
const longestPause = 40

/**
 * Group commit: what is asked for within one turn of the event loop shares a transaction. Jobs run in the order in which they came.
 * One that throws is as if it had never been there.
 */
export class Writer {
  readonly #transactions: Transactions
  readonly #busyTimeout: number
  readonly #queue: Job[] = []
  #head = 0
  /** What the commit took for each job, lately. A job writes pages of its own, and those are written at the end. */
  #commitMs = 0.1
  #immediate: NodeJS.Immediate | undefined
  #pause: Timer | undefined
  #busySince: number | undefined
  #pauses = 0
  #held = false
  #ownWork = 0
  #closing: (() => void) | undefined
  #closed = false

  constructor(transactions: Transactions, busyTimeout: number) {
    this.#transactions = transactions
    this.#busyTimeout = busyTimeout
  }

  /**
   * Runs `work` inside of a transaction; resolves when that is committed. `first`: before all jobs in the queue, also when the queue is
   * full.
   * `last` runs in the same transaction after the work of all jobs that share it, and answers the result.
   */
  write<Result>(work: () => Result, { first = false, last }: WriteOptions<Result> = none): Promise<Result> {
    if (this.#closed) return Promise.reject(new HeedError('closed', 'This store was closed. Open a new one.'))
    if (!first && this.#queue.length - this.#head >= maxQueued) {
      return Promise.reject(
        new HeedError('store_failed', `${maxQueued} writes wait already. Send slower, or try again.`, { retryable: true }),
      )
    }
    return new Promise<Result>((resolve, reject) => {
      const job: Job = { work, last: last as Job['last'], result: undefined, resolve, reject, alone: false }
      if (first) this.#queue.splice(this.#head, 0, job)
      else this.#queue.push(job)
      storeWork.begin()
      this.#schedule()
    })
  }

  /** Begins no transaction until the answer is called. */
  hold(): () => void {
    this.#held = true
    return () => {
      this.#held = false
      if (!this.#idle()) this.#schedule()
    }
  }

  /** Until the answer is called, it is another thread of this process that holds the file: writes wait for as long as that takes. */
  besideOwnWork(): () => void {
    this.#ownWork += 1
    return () => {
      this.#ownWork -= 1
    }
  }

  /** Takes nothing more; resolves when all that was taken is done. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#idle()) return
    await new Promise<void>((resolve) => {
      this.#closing = resolve
    })
  }

  #idle(): boolean {
    return this.#head === this.#queue.length
  }

  #schedule(): void {
    if (this.#immediate || this.#pause || this.#held) return
    this.#immediate = setImmediate(() => {
      this.#immediate = undefined
      if (this.#held) return
      this.#batch()
      if (!this.#idle()) this.#schedule()
      else this.#closing?.()
    })
  }

  #batch(): void {
    const { begin, commit } = this.#transactions
    const from = this.#head
    try {
      begin()
    } catch (error) {
      return this.#refused(error)
    }
    this.#busySince = undefined
    this.#pauses = 0
    try {
      this.#runSome()
      const jobs = this.#head - from
      const started = performance.now()
      commit()
      this.#commitMs += ((performance.now() - started) / jobs - this.#commitMs) / 8
    } catch (error) {
      return this.#failed(from, error)
    }
    for (let index = from; index < this.#head; index += 1) {
      const job = this.#queue[index]
      job?.resolve(job.result)
      storeWork.end()
    }
    this.#forgetDone()
  }

  /** Runs jobs from the head on with their last steps, and moves it behind them. */
  #runSome(): void {
    const from = this.#head
    this.#runWork()
    for (let index = from; index < this.#head; index += 1) {
      const job = this.#queue[index]
      if (job?.last) job.result = job.last(job.result)
    }
  }

  #runWork(): void {
    const started = performance.now()
    const from = this.#head
    const end = Math.min(this.#queue.length, from + batchJobs)
    do {
      const job = this.#queue[this.#head]
      this.#head += 1
      if (job) job.result = job.work()
      if (job?.alone || this.#queue[this.#head]?.alone) return
    } while (this.#head < end && performance.now() - started + (this.#head - from) * this.#commitMs < batchMs)
  }

  /** A job threw, or the commit did: all of them are undone. Each is then tried by itself, and a second failure is its own. */
  #failed(from: number, error: unknown): void {
    this.#transactions.rollback()
    const only = this.#head - from === 1
    if (only) {
      this.#queue[from]?.reject(this.#transactions.failure(error))
      storeWork.end()
      return this.#forgetDone()
    }
    for (let index = from; index < this.#head; index += 1) {
      const job = this.#queue[index]
      if (job) job.alone = true
    }
    this.#head = from
  }

  /** Another connection writes. The jobs wait, up to a limit, without blocking the event loop. */
  #refused(error: unknown): void {
    const now = performance.now()
    this.#busySince ??= now
    if (isBusy(error) && (this.#ownWork > 0 || now - this.#busySince < this.#busyTimeout)) {
      const pause = Math.min(longestPause, 2 ** this.#pauses) * (0.5 + Math.random() / 2)
      this.#pauses += 1
      this.#pause = systemClock.after(pause, () => {
        this.#pause = undefined
        this.#schedule()
      })
      return
    }
    this.#busySince = undefined
    this.#pauses = 0
    const refused = this.#queue.slice(this.#head)
    this.#head = this.#queue.length
    for (const job of refused) {
      job.reject(this.#transactions.failure(error))
      storeWork.end()
    }
    this.#forgetDone()
  }

  #forgetDone(): void {
    if (this.#idle()) {
      this.#queue.length = 0
      this.#head = 0
    } else if (this.#head >= 1024) {
      this.#queue.splice(0, this.#head)
      this.#head = 0
    }
  }
}
