/** Time, as a seam: the system's in production, a virtual one in tests. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /**
   * Calls `run` once after `ms`. Whoever sets a timer owns it and cancels it. A `background` timer does not keep the
   * process alive; one that somebody awaits must, or a script would end in the middle of its own retry.
   */
  after(ms: number, run: () => void, options?: { background?: boolean }): Timer
}

export interface Timer {
  cancel(): void
}

/** What is more than a timer of the system can count is waited for in turns: it would fire at once. */
const longestTimerMs = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run, options) {
    let timer: NodeJS.Timeout
    const wait = (left: number) => {
      timer = left > longestTimerMs ? setTimeout(() => wait(left - longestTimerMs), longestTimerMs) : setTimeout(run, left)
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
