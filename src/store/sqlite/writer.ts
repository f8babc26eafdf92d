import { systemClock, type Timer } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import { isBusy } from './failure.ts'

/** The transactions of a connection; one at a time is open. */
export interface Transactions {
  begin(): void
  commit(): void
  rollback(): void
  /** The error that callers get. */
  failure(error: unknown): Error
}

interface WriteOptions<Result> {
  first?: boolean
  last?: ((result: Result) => Result) | undefined
}

const none = {}

interface Job {
  work(): unknown
  /** The last step of the job, after the work of all jobs that share its transaction. It returns the result. */
  last: ((result: unknown) => unknown) | undefined
  result: unknown
  resolve(result: unknown): void
  reject(error: unknown): void
  /** Set after its transaction failed: its next transaction has no other job, which its failure would undo too. */
  alone: boolean
}

/** The most jobs of a transaction, and the time within which it should commit, because it blocks the event loop. */
const batchJobs = 256
const batchMs = 2
const maxQueued = 100_000
const longestPause = 40

/**
 * Group commit: the jobs of one turn of the event loop share a transaction. They run in the order in which they were added. A job that
 * throws leaves no trace.
 */
export class Writer {
  readonly #transactions: Transactions
  readonly #busyTimeout: number
  readonly #queue: Job[] = []
  #head = 0
  /** The recent duration of a commit per job: the pages of a job are written when the transaction commits. */
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
   * `last` runs in the same transaction after the work of all jobs that share it, and returns the result.
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

  /** Begins no transaction until the returned function is called. */
  hold(): () => void {
    this.#held = true
    return () => {
      this.#held = false
      if (!this.#idle()) this.#schedule()
    }
  }

  /** Until the returned function is called, another thread of this process holds the file, and writes wait without a limit. */
  besideOwnWork(): () => void {
    this.#ownWork += 1
    return () => {
      this.#ownWork -= 1
    }
  }

  /** Accepts no more jobs; resolves when all accepted jobs are done. */
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

  /** Runs the jobs from the head of the queue with their last steps, and moves the head behind them. */
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

  /** A job or the commit threw, and the transaction was rolled back. Each job then runs in its own: a second failure is its error. */
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

  /** Another connection is writing. The jobs wait, up to a limit, without blocking the event loop. */
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
