import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { HeedError, type HeedErrorCode } from '../../src/base/errors.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { countCall, type Meeting } from './no-locks.ts'

export interface Call {
  id: number
  url: string
  domain: string
  method: string
  args: unknown[]
}

export interface CarriedError {
  message: string
  code?: string
  retryable?: boolean
}

export type CarriedResult = { id: number; result: unknown } | { id: number; error: CarriedError }

export interface WorkerSettings {
  /** The stores take no locks, and their transactions wait here for those of the other thread. */
  meeting?: Meeting
}

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
}

/**
 * Connections to database files in a worker thread. Stores of one thread share the connection to a file, and a transaction of theirs
 * ends before another begins: two connections that write at the same time need two threads, or two processes.
 */
export class SecondConnection {
  readonly #settings: WorkerSettings
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #calls = 0

  constructor(settings: WorkerSettings = {}) {
    this.#settings = settings
    this.#worker = new Worker(new URL('./second-connection-worker.ts', import.meta.url), { workerData: settings })
    this.#worker.on('message', (answer: CarriedResult) => {
      if (settings.meeting) countCall(settings.meeting, -1)
      const waiting = this.#waiting.get(answer.id)
      this.#waiting.delete(answer.id)
      if ('error' in answer) waiting?.reject(revived(answer.error))
      else waiting?.resolve(withErrors(answer.result))
    })
    this.#worker.on('error', (error: Error) => {
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
    })
  }

  /** The store of a domain in that file, each of whose calls is made in the other thread. */
  readonly store = <Domain extends keyof StoreDomains>(url: string, domain: Domain): StoreDomains[Domain] => {
    const call = (method: string, args: unknown[]) => new Promise<unknown>((resolve, reject) => {
      const id = this.#calls++
      this.#waiting.set(id, { resolve, reject })
      if (this.#settings.meeting) countCall(this.#settings.meeting, 1)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
      this.#worker.postMessage({ id, url, domain, method, args } satisfies Call)
    })
    /** Its methods, and those of the stores within it, which are named by their paths. */
    const methodsOf = (path: string) => (_: object, name: string | symbol) => {
      if (name === 'then') return undefined
      if (name === 'scores') return new Proxy({}, { get: methodsOf('scores.') })
      return (...args: unknown[]) => call(path + String(name), args)
    }
    return new Proxy({}, { get: methodsOf('') }) as StoreDomains[Domain]
  }

  async end(): Promise<void> {
    const ended = once(this.#worker, 'exit')
    await this.#worker.terminate()
    await ended
  }
}

function revived({ message, code, retryable }: CarriedError): Error {
  if (code === undefined) return new Error(message)
  return new HeedError(code as HeedErrorCode, message, { ...(retryable !== undefined && { retryable }) })
}

function withErrors(result: unknown): unknown {
  if (!Array.isArray(result)) return result
  return result.map((one: unknown) =>
    typeof one === 'object' && one !== null && 'carriedError' in one ? { error: revived(one.carriedError as CarriedError) } : one)
}
