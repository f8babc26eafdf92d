import { parentPort, workerData } from 'node:worker_threads'
import { isHeedError } from '../../../errors.ts'
import type { CarriedError } from '../bulk-job.ts'
import { openDatabases } from './databases.ts'
import { RecallEngine, type EngineCall } from './engine.ts'

export interface EngineRequest {
  id: number
  call: EngineCall | 'close'
  args: unknown[]
}

export type EngineAnswer = { id: number } & ({ result: unknown } | { error: CarriedError })

/** An engine in a thread of its own: answers one call after the other. */
const { path } = workerData as { path: string }
let engine: RecallEngine | undefined

parentPort?.on('message', ({ id, call, args }: EngineRequest) => {
  if (call === 'close') {
    engine?.close()
    parentPort?.close()
    return
  }
  let answer: EngineAnswer
  try {
    engine ??= new RecallEngine(openDatabases(path))
    const act = engine[call] as (...given: unknown[]) => unknown
    answer = { id, result: act.apply(engine, args) }
  } catch (error) {
    answer = { id, error: carried(error) }
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(answer)
})

function carried(error: unknown): CarriedError {
  const { message } = error as Error
  if (isHeedError(error)) return { message, code: error.code, retryable: error.retryable, ...(error.details && { details: error.details }) }
  const errcode = (error as { errcode?: number }).errcode
  return { message, ...(errcode === undefined ? {} : { errcode }) }
}
