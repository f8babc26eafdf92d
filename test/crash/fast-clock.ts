import type { Clock } from '../../src/base/clock.ts'

/** The system's clock, so many times as fast: leases of ten seconds last for a fraction of one. The same in every process. */
export function fastClock(speed: number, origin: number): Clock {
  return {
    now: () => Math.floor(origin + (Date.now() - origin) * speed),
    after(ms, run, options) {
      const timer = setTimeout(run, ms / speed)
      if (options?.background) timer.unref()
      return { cancel: () => clearTimeout(timer) }
    },
  }
}
