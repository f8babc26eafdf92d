import { parentPort } from 'node:worker_threads'
import { isHeedError } from '../../base/errors.ts'
import type { CarriedError } from '../../store/sqlite/bulk-job.ts'
import type { CallAnswer, CallRequest } from './worker-calls.ts'

/** Answers calls to what `open` makes, one after the other, from the thread that this is called in. */
export function serveCalls(open: () => { close(): void }): void {
  let served: { close(): void } | undefined
  parentPort?.on('message', ({ id, call, args }: CallRequest) => {
    if (call === 'close') {
      served?.close()
      parentPort?.close()
      return
    }
    let answer: CallAnswer
    try {
      served ??= open()
      const act = Reflect.get(served, call) as (...given: unknown[]) => unknown
      answer = { id, result: act.apply(served, args) }
    } catch (error) {
      answer = { id, error: carried(error) }
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    parentPort?.postMessage(answer)
  })
}

function carried(error: unknown): CarriedError {
  const { message } = error as Error
  if (isHeedError(error)) return { message, code: error.code, retryable: error.retryable, ...(error.details && { details: error.details }) }
  const { errcode } = error as { errcode?: number }
  return { message, ...(errcode === undefined ? {} : { errcode }) }
}
