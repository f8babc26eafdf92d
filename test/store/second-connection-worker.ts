import { parentPort, workerData } from 'node:worker_threads'
import { isHeedError } from '../../src/base/errors.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import { takeNoLocks } from './no-locks.ts'
import type { Call, CarriedError, CarriedResult, WorkerSettings } from './second-connection.ts'

/** Calls stores in a worker thread, whose modules, and so its connections, are not those of the main thread. */
const { meeting } = workerData as WorkerSettings
const stores = new Map<string, LibSQLStore>()

function carried(error: unknown): CarriedError {
  if (isHeedError(error)) return { message: error.message, code: error.code, retryable: error.retryable }
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}

async function perform({ url, domain, method, args }: Omit<Call, 'id'>): Promise<unknown> {
  let store = stores.get(url)
  if (method === 'close') {
    stores.delete(url)
    return store?.close()
  }
  if (!store) stores.set(url, store = new LibSQLStore({ url }))
  const part: unknown = await store.getStore(domain as keyof StoreDomains)
  const path = method.split('.')
  const holder = path.slice(0, -1).reduce((within, name) => (within as Record<string, unknown>)[name], part)
  const result = await (holder as Record<string, (...args: unknown[]) => Promise<unknown>>)[path.at(-1) ?? '']?.(...args)
  // A message loses the class of an error: errors in the results of `accept` are carried like those that are thrown.
  if (!Array.isArray(result)) return result
  return result.map((one: unknown) => (isAnswerWithError(one) ? { carriedError: carried(one.error) } : one))
}

function isAnswerWithError(answer: unknown): answer is { error: unknown } {
  return typeof answer === 'object' && answer !== null && 'error' in answer && answer.error instanceof Error
}

if (meeting) takeNoLocks(meeting)

parentPort?.on('message', ({ id, ...call }: Call) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  const answer = (result: CarriedResult) => parentPort?.postMessage(result)
  perform(call).then((result) => answer({ id, result }), (error: unknown) => answer({ id, error: carried(error) }))
})
