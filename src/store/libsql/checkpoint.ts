import { Worker } from 'node:worker_threads'

/** Pages in the log, about, before it is copied back: 32 MB. */
const interval = 8000
/** So many pages are copied in a few milliseconds. */
const few = 2000
const mostRounds = 4

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
 * Owns the worker, from the first time it is needed until `close`.
 */
export class Checkpointer {
  readonly #path: string
  readonly #host: CheckpointHost
  #worker: Worker | undefined
  #since = 0
  #rounds = 0
  #resume: (() => void) | undefined
  #ended = false

  constructor(databasePath: string, host: CheckpointHost) {
    this.#path = databasePath
    this.#host = host
  }

  /** A transaction of so many jobs was committed. Jobs of one transaction share many of the pages that they write. */
  committed(jobs: number): void {
    this.#since += 8 + 4 * jobs
    if (this.#since < interval || this.#rounds > 0 || this.#ended) return
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

  #copy(worker: Worker, how: 'copy' | 'renew'): void {
    this.#rounds += 1
    this.#since = 0
    tell(worker, how)
  }

  /** What was written meanwhile is left. If that is little, the next round is the last. */
  #copied(worker: Worker, how: 'copy' | 'renew'): void {
    this.#letGo()
    if (how === 'renew' || this.#ended) {
      this.#rounds = 0
      return
    }
    const last = this.#since <= few || this.#rounds >= mostRounds
    if (last) this.#resume = this.#host.hold()
    this.#copy(worker, last ? 'renew' : 'copy')
  }

  #letGo(): void {
    this.#resume?.()
    this.#resume = undefined
  }

  #start(): Worker {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const worker = new Worker(new URL(`./checkpoint-worker.${extension}`, import.meta.url), {
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    })
    worker.unref()
    worker.on('message', (how: 'copy' | 'renew') => this.#copied(worker, how))
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
