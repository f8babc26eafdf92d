import type { Worker } from 'node:worker_threads'
import { describe, HeedError } from '../../base/errors.ts'
import { openWorker } from '../../base/worker.ts'
import { revived } from '../../store/sqlite/bulk.ts'
import type { CarriedError } from '../../store/sqlite/bulk-job.ts'

export interface CallRequest {
  id: number
  /** `close` ends the thread. */
  call: string
  args: unknown[]
}

export type CallAnswer = { id: number } & ({ result: unknown } | { error: CarriedError })

interface Waiting {
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Calls to something in a thread of its own, which keeps the process alive only while somebody waits for an answer. */
export class WorkerCalls {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended: Promise<unknown>
  #asked = 0
  #failure: unknown

  /** Runs the file `name` (without its ending) beside the module `beside`, which passes its `import.meta.url`. */
  constructor(beside: string, name: string, workerData: unknown) {
    this.#worker = openWorker(beside, name, { workerData })
    this.#worker.unref()
    this.#worker.on('message', (answer: CallAnswer) => this.#settle(answer))
    this.#worker.once('error', (error) => this.#fail(error))
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#fail(new Error(`the thread that answers ended with ${code}`))
        resolve(code)
      })
    })
  }

  ask(call: string, args: unknown[]): Promise<unknown> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      const id = ++this.#asked
      // What can't be passed on throws here, and then nobody waits.
      this.#post({ id, call, args })
      this.#waiting.set(id, { resolve, reject })
      if (this.#waiting.size === 1) this.#worker.ref()
    })
  }

  async close(): Promise<void> {
    if (!this.#failure) this.#post({ id: 0, call: 'close', args: [] })
    this.#worker.ref()
    await this.#ended
  }

  #post(request: CallRequest): void {
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      this.#worker.postMessage(request)
    } catch (cause) {
      throw new HeedError('invalid_argument', `What ${request.call} was given can't be passed to another thread: ${describe(cause)}`, { cause, details: { call: request.call } })
    }
  }

  #settle(answer: CallAnswer): void {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if (this.#waiting.size === 0) this.#worker.unref()
    if ('error' in answer) waiting?.reject(revived(answer.error))
    else waiting?.resolve(answer.result)
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
