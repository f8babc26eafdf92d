import type { Clock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { untilAborted } from '../../base/promises.ts'

export interface Deadline {
  signal: AbortSignal
  /** The work is given up after this time, whether or not it reacts to its signal. */
  timeoutMs: number
  clock: Clock
  /** The timer must not keep the process alive. */
  background?: boolean
}

/** Awaits work of foreign code. `who` begins the error when it takes too long. */
export async function withinDeadline<Result>(
  who: string, work: (signal: AbortSignal) => PromiseLike<Result>, { signal, timeoutMs, clock, background = false }: Deadline,
): Promise<Result> {
  signal.throwIfAborted()
  const timeout = new AbortController()
  const onTimeout = () => {
    timeout.abort(new HeedError('unreachable', `${who} took longer than ${timeoutMs / 1_000} s.`, { retryable: true }))
  }
  const timer = clock.after(timeoutMs, onTimeout, { background })
  try {
    const either = AbortSignal.any([timeout.signal, signal])
    return await untilAborted(work(either), either)
  } finally {
    timer.cancel()
  }
}
