import { checkNames, checkWhole, refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import { storeWork } from '../base/promises.ts'

/**
 * A clock that only moves when `advance` or `runAll` is called. A timer of 0 ms fires without a move, after pending promises have
 * settled: code that waits for a real disk may set it after the move that it was meant for.
 */
export interface VirtualClock extends Clock {
  /**
   * Moves on by `ms`. Timers that become due fire in the order of their time, then of their creation, each at its own `now()`; the
   * promises that a timer starts settle before the next one fires, and the stores of this process finish what these write. Calls run one
   * after the other.
   */
  advance(ms: number): Promise<void>
  /**
   * Moves from timer to timer until only background timers are left; those that become due on the way fire too. Throws after `limit`
   * timers, by default 10,000.
   */
  runAll(options?: { limit?: number }): Promise<void>
  /** The number of timers, background ones included. 0 after a clean shutdown. */
  readonly pending: number
}

interface VirtualTimer {
  due: number
  run: () => void
  background: boolean
}

/** `start` is the first `now()`. Defaults to the beginning of 2026, in UTC. */
export function virtualClock(start: number | Date = Date.UTC(2026, 0, 1)): VirtualClock {
  let now = Number(start)
  if (Number.isNaN(now)) throw refused('start', 'a time in milliseconds, or a valid Date')
  /** In the order of due time, then of creation. */
  const timers: VirtualTimer[] = []
  let lastMove = Promise.resolve()

  const afterLastMove = (move: () => Promise<void>): Promise<void> => {
    const moved = lastMove.then(move)
    lastMove = moved.catch(() => {})
    return moved
  }

  const advance = (ms: number): Promise<void> =>
    afterLastMove(async () => {
      if (typeof ms !== 'number' || !(ms >= 0)) throw refused('advance()', 'called with a number of milliseconds of at least 0')
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
    runAll: (options = {}) =>
      afterLastMove(async () => {
        checkNames('runAll()', options, ['limit'])
        const { limit = 10_000 } = options
        checkWhole('limit', limit)
        await settled()
        for (let fired = 0; timers.some(({ background }) => !background); fired++) {
          if (fired === limit) {
            const message = `After ${limit} timers, others are still set. Check for a timer that sets itself again.`
            throw new HeedError('invalid_argument', message)
          }
          await fireNext()
        }
      }),
    get pending() {
      return timers.length
    },
  }
}

/** Read when the module loads, so that fake timers of a test runner do not stop this clock. */
const immediate = setImmediate

/** A run that never ends must not stop the clock: it moves on after so much work of the stores. */
const mostRounds = 2_000

/** Resolves when promises that depend on no timer have settled, and the stores have nothing under way. */
async function settled(): Promise<void> {
  // After a store is done, code may go on by another turn of the event loop before it writes again.
  for (let quiet = 0, rounds = 0; quiet < 2 && rounds < mostRounds; rounds++) {
    await new Promise((resolve) => immediate(resolve))
    quiet = storeWork.isIdle ? quiet + 1 : 0
    if (quiet === 0) await storeWork.whenIdle()
  }
}
