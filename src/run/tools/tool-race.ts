import { HeedError } from '../../base/errors.ts'
import type { Run } from '../loop/run.ts'
import type { ResolvedTool } from './tool-set.ts'

/** What a tool does, and what is left of its `timeoutMs` for it. */
export interface ToolWork {
  left: number | undefined
  start: (signal: AbortSignal) => unknown
  onPreliminary?: (value: unknown) => Promise<void>
}

/**
 * Waits for a tool, but not beyond its `timeoutMs` nor beyond the signal: a tool that never settles can't hold a thread.
 * Of an async iterable, the last value is the result and the ones before it are shown as they come.
 */
export function raceTool(run: Run, { name, tool }: ResolvedTool, signal: AbortSignal, work: ToolWork): Promise<unknown> {
  const controller = new AbortController()
  return new Promise((resolve, reject) => {
    const end = (error: HeedError) => {
      release()
      controller.abort(error)
      reject(error)
    }
    const onAbort = () => end(stopped(name))
    const timer = work.left === undefined
      ? undefined
      : run.clock.after(work.left, () => end(new HeedError('tool_timeout', `${name} did not finish within ${tool.timeoutMs} ms.`)))
    const release = () => {
      timer?.cancel()
      signal.removeEventListener('abort', onAbort)
    }
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    settle(work, controller.signal).then(
      (value) => {
        release()
        resolve(value)
      },
      (error: unknown) => {
        release()
        reject(error)
      },
    )
  })
}

/** What the model is told of a call that an abort ended. */
export function stopped(toolName: string): HeedError {
  return new HeedError('aborted', `${toolName} was stopped: the run was aborted.`)
}

async function settle({ start, onPreliminary }: ToolWork, signal: AbortSignal): Promise<unknown> {
  const value = await start(signal)
  if (!isAsyncIterable(value)) return value
  let last: unknown
  let first = true
  for await (const item of value) {
    if (signal.aborted) break
    if (!first) await onPreliminary?.(last)
    first = false
    last = item
  }
  return last
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
