/** Time, as a seam: the system's in production, a virtual one in tests. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /**
   * Calls `run` once after `ms`. The caller owns the timer and cancels it. A `background` timer does not keep the process alive; a timer
   * that is awaited must, or a script would end in the middle of its own retry.
   */
  after(ms: number, run: () => void, options?: { background?: boolean }): Timer
}

/** A timer of a clock. */
export interface Timer {
  cancel(): void
}

/** The longest delay of a system timer. A longer one would fire at once, so it is waited for in parts. */
const maxTimerMs = 2 ** 31 - 1

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run, options) {
    let timer: NodeJS.Timeout
    const wait = (left: number) => {
      timer = left > maxTimerMs ? setTimeout(() => wait(left - maxTimerMs), maxTimerMs) : setTimeout(run, left)
      if (options?.background) timer.unref()
    }
    wait(ms)
    return { cancel: () => clearTimeout(timer) }
  },
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      timer.cancel()
      reject(signal?.reason)
    }
    const timer = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** The delay in milliseconds that a server asks for in its headers: `retry-after-ms`, or `retry-after` as seconds or a date. */
export function retryAfter(headers: Readonly<Record<string, string>> | undefined, now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers?.['retry-after-ms'] ?? '')
  if (milliseconds >= 0) return milliseconds
  const after = headers?.['retry-after']
  if (after === undefined) return undefined
  const seconds = Number.parseFloat(after)
  if (seconds >= 0) return seconds * 1000
  const date = Date.parse(after)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** Waits for `work`, at most `timeoutMs`; without a limit, until it is done. `onTimeout` is called when it is not done by then. */
export async function withTimeout(
  clock: Clock, timeoutMs: number | undefined, work: Promise<unknown>, onTimeout?: () => void,
): Promise<void> {
  if (timeoutMs === undefined) {
    await work
    return
  }
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = clock.after(timeoutMs, () => {
    onTimeout?.()
    resolve()
  })
  try {
    await Promise.race([work, promise])
  } finally {
    timer.cancel()
    // A failure after the timeout is logged by the code that does the work.
    work.catch(() => {})
  }
}
