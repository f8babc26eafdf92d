import { Cron } from 'croner'
import { describe, HeedError } from '../errors.ts'

/** The longest that clocks are set forward or back, and then some. */
const longestShiftMs = 4 * 3_600_000

/** The times of a cron expression. */
export interface CronTimes {
  /** The first time after this one; undefined when there is none any more. Milliseconds since the epoch. */
  nextAfter(after: number): number | undefined
}

/**
 * A cron expression, or an error that names it. It is about the clock on the wall: of its time zone, or else of this process.
 *
 * When that clock is set, none of its times is lost and none comes twice. A time of day that the clock skips comes as much later as the clock is set forward; one that it shows
 * twice comes the first time. What is for every hour comes in every hour that passes.
 */
export function cronOf(expression: string, timeZone?: string, field = 'cron'): CronTimes {
  if (/^\s*\d{4}-/.test(expression)) throw new HeedError('invalid_argument', `${field}: '${expression}' is a date and no cron expression. An example: '*/5 * * * *'.`, { details: { field } })
  const of = (zone: string) => {
    try {
      return new Cron(expression, { paused: true, timezone: zone })
    } catch (error) {
      throw new HeedError('invalid_argument', `${field}: '${expression}' is no cron expression: ${describe(error)}. An example: '*/5 * * * *'.`, { details: { field }, cause: error })
    }
  }
  const zone = timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
  if (isForEveryHour(expression)) {
    const times = of(zone)
    return { nextAfter: (after) => times.nextRun(new Date(after))?.getTime() }
  }
  // What the wall shows is counted as if it were UTC, where every time of day is there once.
  const shown = of('UTC')
  const wall = new WallClock(zone)
  return { nextAfter: (after) => firstAfter(shown, wall, after) }
}

function firstAfter(times: Cron, wall: WallClock, after: number): number | undefined {
  let skipped: number | undefined
  for (let shown = times.nextRun(new Date(wall.earliestShown(after))); shown; shown = times.nextRun(shown)) {
    const { at, isShown } = wall.whenShown(shown.getTime())
    if (at <= after) continue
    // Times behind the skipped ones may come before them.
    if (isShown) return skipped === undefined ? at : Math.min(skipped, at)
    skipped = Math.min(skipped ?? at, at)
  }
  return skipped
}

/** Minutes and seconds alone say when it comes. */
function isForEveryHour(expression: string): boolean {
  const fields = expression.trim().split(/\s+/)
  if (fields.length === 1) return fields[0]?.toLowerCase() === '@hourly'
  const hour = fields[fields.length === 5 ? 1 : 2]
  return hour === '*' || hour === '*/1'
}

/** What the clock of a time zone shows. Shown times are milliseconds as if they were UTC. */
class WallClock {
  readonly #format: Intl.DateTimeFormat

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en', {
      timeZone, hourCycle: 'h23', era: 'short', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
    })
  }

  /** Nothing that comes after this time is shown before it. */
  earliestShown(at: number): number {
    const isSet = this.#ahead(at - longestShiftMs) !== this.#ahead(at)
    return at + this.#ahead(at) - (isSet ? longestShiftMs : 0)
  }

  /** When the clock shows this, the first time; where it never does, as much later as it was set forward. */
  whenShown(shown: number): { at: number; isShown: boolean } {
    const day = 86_400_000
    const [before, later] = [this.#ahead(shown - day), this.#ahead(shown + day)]
    const found = [before, later].filter((ahead) => this.#ahead(shown - ahead) === ahead).map((ahead) => shown - ahead)
    return found.length === 0 ? { at: shown - before, isShown: false } : { at: Math.min(...found), isShown: true }
  }

  /** By how much what is shown at a time is ahead of UTC. */
  #ahead(at: number): number {
    const whole = Math.floor(at / 1_000) * 1_000
    const parts = Object.fromEntries(this.#format.formatToParts(whole).map(({ type, value }) => [type, value]))
    const year = parts.era === 'BC' ? 1 - Number(parts.year) : Number(parts.year)
    return Date.UTC(year, Number(parts.month) - 1, Number(parts.day), Number(parts.hour), Number(parts.minute), Number(parts.second)) - whole
  }
}
