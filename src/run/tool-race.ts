import { HeedError } from '../errors.ts'
import type { Run } from './run.ts'
import type { ResolvedTool } from './tool-set.ts'

/**
 * Waits for a tool, but not beyond its `timeoutMs` nor beyond an abort of the run: a tool that never settles can't hold a thread.
 * Of an async iterable, the last value is the result and the ones before it are shown as they come.
 */
export function raceTool(
  run: Run,
  resolved: ResolvedTool,
  start: (signal: AbortSignal) => unknown,
  onPreliminary: (value: unknown) => void,
): Promise<unknown> {
  const { name, tool } = resolved
  const controller = new AbortController()
  return new Promise((resolve, reject) => {
    const end = (error: HeedError) => {
      release()
      controller.abort(error)
      reject(error)
    }
    const onAbort = () => end(new HeedError('aborted', `${name} was stopped: the run was aborted.`))
    const timer = tool.timeoutMs === undefined
      ? undefined
      : run.clock.after(tool.timeoutMs, () => end(new HeedError('tool_timeout', `${name} did not finish within ${tool.timeoutMs} ms.`)))
    const release = () => {
      timer?.cancel()
      run.signal.removeEventListener('abort', onAbort)
    }
    if (run.signal.aborted) return onAbort()
    run.signal.addEventListener('abort', onAbort, { once: true })
    settle(start, controller.signal, onPreliminary).then(
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

async function settle(start: (signal: AbortSignal) => unknown, signal: AbortSignal, onPreliminary: (value: unknown) => void): Promise<unknown> {
  const value = await start(signal)
  if (!isAsyncIterable(value)) return value
  let last: unknown
  let first = true
  for await (const item of value) {
    if (signal.aborted) break
    if (!first) onPreliminary(last)
    first = false
    last = item
  }
  return last
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
