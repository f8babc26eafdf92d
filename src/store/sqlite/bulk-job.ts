import type { Scope } from '../contract/threads.ts'
import type { ThreadClone } from '../contract/messages.ts'

/** What takes too long for the event loop, with everything it needs. */
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

/** An error on its way between threads: the class is lost, these are not. */
export interface CarriedError {
  message: string
  code?: string
  errcode?: number
  details?: Record<string, unknown>
  retryable?: boolean
}

export type BulkAnswer = { result: unknown } | { error: CarriedError }
