import { parentPort, type Worker } from 'node:worker_threads'
import { describe, HeedError } from '../../base/errors.ts'
import { openWorker } from '../../base/worker.ts'
import { carried, revived, type CarriedError } from '../../store/sqlite/bulk.ts'

interface CallRequest {
  id: number
  /** A method of the served object; `close` ends the worker. */
  method: string
  args: unknown[]
}

type CallResponse = { id: number } & ({ result: unknown } | { error: CarriedError })

interface PendingCall {
  resolve(result: unknown): void
  reject(error: unknown): void
}

/**
 * Calls methods of an object that `serveCalls` serves in a worker thread. The worker keeps the process alive only while a call is pending.
 */
export class WorkerCalls {
  readonly #worker: Worker
  readonly #pending = new Map<number, PendingCall>()
  readonly #ended: Promise<unknown>
  #lastId = 0
  #failure: unknown

  /** Runs the file `name` (without its ending) beside the module `beside`, which passes its `import.meta.url`. */
  constructor(beside: string, name: string, workerData: unknown) {
    this.#worker = openWorker(beside, name, { workerData })
    this.#worker.on('message', (response: CallResponse) => this.#complete(response))
    // After the listener, which refs the worker again.
    this.#worker.unref()
    this.#worker.once('error', (error) => this.#fail(error))
    this.#ended = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#fail(new Error(`the worker thread ended with code ${code}`))
        resolve(code)
      })
    })
  }

  call(method: string, args: unknown[]): Promise<unknown> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      // Throws when the arguments cannot be cloned; the call is then not pending.
      this.#post({ id, method, args })
      this.#pending.set(id, { resolve, reject })
      if (this.#pending.size === 1) this.#worker.ref()
    })
  }

  async close(): Promise<void> {
    if (!this.#failure) this.#post({ id: 0, method: 'close', args: [] })
    this.#worker.ref()
    await this.#ended
  }

  #post(request: CallRequest): void {
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      this.#worker.postMessage(request)
    } catch (cause) {
      throw new HeedError(
        'invalid_argument',
        `The arguments of ${request.method} cannot be passed to a worker thread: ${describe(cause)}`,
        {
          cause,
          details: { call: request.method },
        },
      )
    }
  }

  #complete(response: CallResponse): void {
    const call = this.#pending.get(response.id)
    this.#pending.delete(response.id)
    if (this.#pending.size === 0) this.#worker.unref()
    if ('error' in response) call?.reject(revived(response.error))
    else call?.resolve(response.result)
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}

/** The worker's side: executes calls on the object that `open` returns, one after the other. `open` is called with the first of them. */
export function serveCalls(open: () => { close(): void }): void {
  let served: { close(): void } | undefined
  parentPort?.on('message', ({ id, method, args }: CallRequest) => {
    if (method === 'close') {
      served?.close()
      parentPort?.close()
      return
    }
    let response: CallResponse
    try {
      served ??= open()
      const act = Reflect.get(served, method) as (...args: unknown[]) => unknown
      response = { id, result: act.apply(served, args) }
    } catch (error) {
      response = { id, error: carried(error) }
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    parentPort?.postMessage(response)
  })
}
