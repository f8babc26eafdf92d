import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'

/**
 * A clock that stands still until it is told to move. What is due without a move, a timer of 0 ms, fires by itself once
 * all else has settled: whoever works on a real disk may set it after the move that it was meant for.
 */
export interface VirtualClock extends Clock {
  /**
   * Moves on by `ms`. What falls due on the way fires in the order of its time, then of its creation, each at its own
   * `now()`; whatever a timer sets going settles before the next one fires. Calls queue up behind each other.
   */
  advance(ms: number): Promise<void>
  /**
   * Moves from timer to timer until none is left that somebody waits for: background timers fire on the way but do not
   * keep it going. Throws when `limit` timers (10,000 unless told) were not the end of it.
   */
  runAll(options?: { limit?: number }): Promise<void>
  /** How many timers are set, background ones included. 0 after a clean shutdown. */
  readonly pending: number
}

interface VirtualTimer {
  due: number
  run: () => void
  background: boolean
}

/** `start` is the first `now()`: the beginning of 2026, in UTC, unless told. */
export function virtualClock(start: number | Date = Date.UTC(2026, 0, 1)): VirtualClock {
  let now = Number(start)
  /** By due time, ties by creation. */
  const timers: VirtualTimer[] = []
  let turn = Promise.resolve()

  const inTurn = (move: () => Promise<void>): Promise<void> => {
    const moved = turn.then(move)
    turn = moved.catch(() => {})
    return moved
  }

  const advance = (ms: number): Promise<void> =>
    inTurn(async () => {
      await settled()
      const target = now + ms
      while (timers[0] && timers[0].due <= target) await fireNext()
      now = target
      await settled()
    })

  const fireNext = async () => {
    const timer = timers.shift()!
    now = Math.max(now, timer.due)
    timer.run()
    await settled()
  }

  return {
    now: () => now,
    after(ms, run, options) {
      // Times are whole milliseconds, as the system's are.
      const timer = { due: now + Math.max(0, Math.ceil(ms)), run, background: options?.background ?? false }
      timers.splice(timers.findLastIndex(({ due }) => due <= timer.due) + 1, 0, timer)
      if (timer.due === now) void advance(0)
      return {
        cancel() {
          const position = timers.indexOf(timer)
          if (position !== -1) timers.splice(position, 1)
        },
      }
    },
    advance,
    runAll: ({ limit = 10_000 } = {}) =>
      inTurn(async () => {
        await settled()
        for (let fired = 0; timers.some(({ background }) => !background); fired++) {
          if (fired === limit) {
            throw new HeedError('invalid_argument', `After ${limit} timers some are still set: is one setting itself anew?`)
          }
          await fireNext()
        }
      }),
    get pending() {
      return timers.length
    },
  }
}

/** Taken when the module loads, so that a test runner's fake timers do not stop this clock. */
const immediate = setImmediate

/** Every promise that can settle without time passing has settled. */
function settled(): Promise<void> {
  return new Promise((resolve) => immediate(resolve))
}
