import type { Worker } from 'node:worker_threads'
import { openWorker } from '../../base/worker.ts'

/** So long the log becomes, about, before it is copied back. */
const logBytes = 32 * 2 ** 20
/** So many pages are copied in a few milliseconds. */
const few = 2000
const mostRounds = 4
/** What a commit writes besides its rows, in rows. */
const perCommit = 2
/** A row and its indexes write no more pages than this, whatever a log of several processes seems to say. */
const mostPages = 16

/** A copy that was made, and how many pages the log had then. */
export interface Copied {
  how: 'copy' | 'renew'
  pages: number
}

export interface CheckpointHost {
  /** Lets no write begin until the answer is called. */
  hold(): () => void
  /** No worker can be had: SQLite must do it by itself, however long that takes. */
  giveUp(): void
}

/**
 * Keeps the log short. A worker copies it while writes go on, until little is left; for that rest writes are held, because the log
 * begins anew only when all of it was copied. Its file keeps its size: syncing blocks that exist is cheaper than syncing new ones.
 *
 * Owns the worker, from the first time it is needed until `close`. The worker keeps the process alive only while it copies, since writes
 * may wait for that.
 */
export class Checkpointer {
  readonly #path: string
  readonly #interval: number
  readonly #host: CheckpointHost
  #worker: Worker | undefined
  /** Rows that were written to the log: since it began, and until the last copy. */
  #rows = 0
  #copiedRows = 0
  /** Few rows of many share a page where keys are far apart, and many of few do: each copy tells. */
  #pagesPerRow = 2
  #rounds = 0
  #resume: (() => void) | undefined
  #ended = false

  constructor({ path, pageSize }: { path: string; pageSize: number }, host: CheckpointHost) {
    this.#path = path
    this.#interval = logBytes / pageSize
    this.#host = host
  }

  /** A transaction that wrote so many rows was committed. */
  committed(rows: number): void {
    this.#rows += rows + perCommit
    if (this.#pages() < this.#interval || this.#rounds > 0 || this.#ended) return
    this.#worker ??= this.#start()
    this.#copy(this.#worker, 'copy')
  }

  async close(): Promise<void> {
    this.#ended = true
    const worker = this.#worker
    if (!worker) return
    const gone = new Promise((resolve) => worker.once('exit', resolve))
    worker.ref()
    tell(worker, 'copy')
    tell(worker, 'end')
    await gone
  }

  /** About how many pages are not copied yet. */
  #pages(): number {
    return (this.#rows - this.#copiedRows) * this.#pagesPerRow
  }

  #copy(worker: Worker, how: Copied['how']): void {
    this.#rounds += 1
    this.#copiedRows = this.#rows
    worker.ref()
    tell(worker, how)
  }

  /** What was written meanwhile is left. If that is little, the next round is the last. */
  #copied(worker: Worker, { how, pages }: Copied): void {
    this.#letGo()
    if (pages > 0) this.#pagesPerRow = Math.min(mostPages, Math.max(1, pages / this.#copiedRows))
    if (how === 'renew' || this.#ended) {
      if (!this.#ended) worker.unref()
      this.#rounds = 0
      this.#rows -= this.#copiedRows
      this.#copiedRows = 0
      return
    }
    const last = this.#pages() <= few || this.#rounds >= mostRounds
    if (last) this.#resume = this.#host.hold()
    this.#copy(worker, last ? 'renew' : 'copy')
  }

  #letGo(): void {
    this.#resume?.()
    this.#resume = undefined
  }

  #start(): Worker {
    const worker = openWorker(import.meta.url, 'checkpoint-worker', {
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    })
    worker.on('message', (copied: Copied) => this.#copied(worker, copied))
    worker.on('error', () => {
      this.#worker = undefined
      if (!this.#ended) this.#host.giveUp()
      this.#ended = true
      this.#letGo()
    })
    return worker
  }
}

function tell(worker: Worker, what: 'copy' | 'renew' | 'end'): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  worker.postMessage(what)
}
