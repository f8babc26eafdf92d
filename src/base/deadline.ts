import type { Clock } from './clock.ts'
import { untilAborted } from './promises.ts'

/** Awaits work of the program's own for a time: then, or when `signal` aborts, rejects though the work has not ended. */
export async function beforeDeadline<T>(
  work: PromiseLike<T>, { clock, ms, error, signal }: { clock: Clock; ms: number; error: () => Error; signal?: AbortSignal },
): Promise<T> {
  const late = new AbortController()
  const timer = clock.after(ms, () => late.abort(error()))
  try {
    return await untilAborted(work, signal ? AbortSignal.any([late.signal, signal]) : late.signal)
  } finally {
    timer.cancel()
  }
}
