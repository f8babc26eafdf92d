import { systemClock, type Clock } from '../../src/base/clock.ts'

/** The system's clock, so much ahead: what a killed process claimed is due again. */
export function shiftedClock(ms: number): Clock {
  return { now: () => systemClock.now() + ms, after: (wait, run, options) => systemClock.after(wait, run, options) }
}

/** A clock that jumps, so much ahead at first: its timers run in the time of the system. */
export function jumpingClock(ahead = 0): Clock & { jump(ms: number): void } {
  let shift = ahead
  return {
    now: () => systemClock.now() + shift,
    after: (wait, run, options) => systemClock.after(wait, run, options),
    jump: (ms) => void (shift += ms),
  }
}
