import type { Worker } from 'node:worker_threads'
import { openWorker } from '../../base/worker.ts'

/** The approximate length of the log at which it is copied into the database. */
const logBytes = 32 * 2 ** 20
/** The number of pages that are copied in a few milliseconds. */
const few = 2000
const mostRounds = 4
/** The pages that a commit writes besides those of its rows, counted as rows. */
const perCommit = 2
/** The most pages that a row and its indexes write. The log also has pages of other processes, which would raise the estimate. */
const mostPages = 16

/** A finished copy, and the number of pages that the log had then. */
export interface Copied {
  how: 'copy' | 'renew'
  pages: number
}

interface CheckpointHost {
  /** No write begins until the returned function is called. */
  hold(): () => void
  /** The worker thread cannot be started: SQLite checkpoints by itself, during writes. */
  giveUp(): void
}

/**
 * Keeps the log short. A worker copies it while writes continue, until little is left; for the rest writes are held, because SQLite
 * resets the log only when all of it was copied. Its file keeps its size: syncing blocks that exist is cheaper than syncing new ones.
 *
 * Owns the worker, from the first time it is needed until `close`. The worker keeps the process alive only while it copies, since writes
 * may wait for that.
 */
export class Checkpointer {
  readonly #path: string
  readonly #interval: number
  readonly #host: CheckpointHost
  #worker: Worker | undefined
  /** The rows written to the log since it was reset, and those of them that the last copy had. */
  #rows = 0
  #copiedRows = 0
  /** The pages per row. It depends on how far apart the keys of a commit are, so each copy measures it again. */
  #pagesPerRow = 2
  #rounds = 0
  #resume: (() => void) | undefined
  #ended = false

  constructor({ path, pageSize }: { path: string; pageSize: number }, host: CheckpointHost) {
    this.#path = path
    this.#interval = logBytes / pageSize
    this.#host = host
  }

  /** Called after a commit, with the number of rows that it wrote. */
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

  /** The estimated number of pages that are not copied yet. */
  #pages(): number {
    return (this.#rows - this.#copiedRows) * this.#pagesPerRow
  }

  #copy(worker: Worker, how: Copied['how']): void {
    this.#rounds += 1
    this.#copiedRows = this.#rows
    worker.ref()
    tell(worker, how)
  }

  /** Copies again what was written during the last copy. Where that is little, writes are held and the next round is the last. */
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
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  worker.postMessage(what)
}
