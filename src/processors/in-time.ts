import { HeedError, isHeedError } from '../errors.ts'
import type { Run } from '../run/run.ts'
import type { Processor } from './processor.ts'

const defaultTimeoutMs = 300_000

const ours = new WeakSet<HeedError>()

/** What a hook comes to, unless it takes longer than it may. */
export function inTime<T>(run: Run, processor: Processor, hook: string, work: T | Promise<T>): T | Promise<T> {
  if (!(work instanceof Promise)) return work
  const { timeoutMs = defaultTimeoutMs } = processor
  return new Promise((resolve, reject) => {
    const timer = run.clock.after(timeoutMs, () => {
      const error = new HeedError('processor_timeout', `Processor '${processor.id}' did not come to an end in ${hook} within ${timeoutMs} ms. Give it a larger timeoutMs, or let it listen to abortSignal.`, {
        details: { processorId: processor.id, hook, timeoutMs },
      })
      ours.add(error)
      reject(error)
    })
    work.then(resolve, reject).finally(() => timer.cancel())
  })
}

/** The same code thrown by a processor itself says nothing of this run. */
export function isTimeout(error: unknown): boolean {
  return isHeedError(error) && ours.has(error)
}
