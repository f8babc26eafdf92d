import type { Scope } from '../contract/threads.ts'
import type { ThreadClone } from '../contract/messages.ts'
import { HeedError, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import { storeWork } from '../../base/promises.ts'
import { openWorker } from '../../base/worker.ts'

/** A job that would block the event loop for too long, with its arguments. */
export type BulkJob =
  | { kind: 'cloneThread'; scope: Scope; clone: ThreadClone }
  | { kind: 'deleteMessages'; scope: Scope }
  | { kind: 'backup'; to: string }
  | { kind: 'restore'; from: string }

export interface BulkOrder {
  path: string
  busyTimeout: number
  job: BulkJob
}

/** The fields of an error that a message of a worker thread keeps; its class is lost. */
export interface CarriedError {
  message: string
  code?: string
  errcode?: number
  details?: Record<string, unknown>
  retryable?: boolean
}

export type BulkAnswer = { result: unknown } | { error: CarriedError }

/** Runs one job in a worker thread, which ends with the job. */
export function inBulk(order: BulkOrder): Promise<unknown> {
  const worker = openWorker(import.meta.url, 'bulk-worker', { workerData: order })
  return new Promise((resolve, reject) => {
    let answered: BulkAnswer | undefined
    storeWork.begin()
    worker.once('message', (answer: BulkAnswer) => {
      answered = answer
    })
    worker.once('error', reject)
    worker.once('exit', (code) => {
      storeWork.end()
      if (!answered) reject(new Error(`the worker thread that did it ended with ${code}`))
      else if ('error' in answered) reject(revived(answered.error))
      else resolve(answered.result)
    })
  })
}

export function carried(error: unknown): CarriedError {
  if (isHeedError(error))
    return { message: error.message, code: error.code, retryable: error.retryable, ...(error.details && { details: error.details }) }
  const { errcode } = error as { errcode?: unknown }
  return { message: error instanceof Error ? error.message : String(error), ...(typeof errcode === 'number' && { errcode }) }
}

export function revived({ message, code, errcode, details, retryable }: CarriedError): Error {
  if (code === undefined) return Object.assign(new Error(message), errcode === undefined ? {} : { errcode })
  return new HeedError(code as HeedErrorCode, message, { ...(details && { details }), ...(retryable && { retryable }) })
}
