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

/** Longer timers are those of sweeps, leases and losses of messages. */
const shortMs = 3_000

/** A clock that hardly moves: neither sweeps nor leases cause anything, so that what happens is caused by messages between processes. */
export function messageClock(origin: number): Clock {
  return {
    now: () => origin + Math.floor((Date.now() - origin) / 1_000),
    after(ms, run, options) {
      const timer = setTimeout(run, ms < shortMs ? ms : 1_000 * ms)
      if (options?.background) timer.unref()
      return { cancel: () => clearTimeout(timer) }
    },
  }
}
