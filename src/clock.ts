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

export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run, options) {
    const timer = setTimeout(run, ms)
    if (options?.background) timer.unref()
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
