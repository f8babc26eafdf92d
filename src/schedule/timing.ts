import { Cron } from 'croner'
import { describe, HeedError } from '../base/errors.ts'
import type { ScheduleMissed, ScheduleTiming } from '../store/contract/schedules.ts'

const shortestMs = 1_000
/** A hundred years. */
const longestMs = 3_155_760_000_000
/** An occurrence later than this counts as missed. */
const lateMs = 60_000
const maxMissed = 100

/** The first occurrence after a time; undefined when there is none. */
export function nextAfter(timing: ScheduleTiming, after: number, anchor: number): number | undefined {
  if ('at' in timing) return timing.at.getTime() > after ? timing.at.getTime() : undefined
  if ('every' in timing) return anchor + timing.every * (Math.floor(Math.max(0, after - anchor) / timing.every) + 1)
  return cronOf(timing.cron, timing.timeZone).nextAfter(after)
}

/** The occurrences to send now, where the one at `from` is due, and the next one. */
export function occurrences(
  timing: ScheduleTiming, from: number, now: number, missed: ScheduleMissed,
): { send: number[]; nextAt: number | undefined } {
  const nextAt = nextAfter(timing, now, from)
  if (missed === 'skip' && now - from > lateMs) return { send: [], nextAt }
  const send = [from]
  if (missed === 'all') {
    for (let at = nextAfter(timing, from, from); at !== undefined && at <= now && send.length < maxMissed; at = nextAfter(timing, at, from))
      send.push(at)
  }
  return { send, nextAt }
}

/** Validates a timing. Returns it without other fields, and its first occurrence. */
export function checkTiming(
  input: { cron?: unknown; timeZone?: unknown; every?: unknown; at?: unknown }, now: number,
): { timing: ScheduleTiming; first: number } {
  const { cron, timeZone, every, at } = input
  if ([cron, every, at].filter((value) => value !== undefined).length !== 1)
    throw invalidSchedule('cron', 'or every or at: a schedule needs exactly one of them')
  if (timeZone !== undefined && (cron === undefined || !isTimeZone(timeZone)))
    throw invalidSchedule('timeZone', "must be a name such as 'Europe/Zurich', beside a cron")
  if (every !== undefined) {
    if (!Number.isInteger(every) || Number(every) < shortestMs || Number(every) > longestMs)
      throw invalidSchedule('every', `must be a whole number of milliseconds, from ${shortestMs} to ${longestMs}`)
    return { timing: { every: Number(every) }, first: now + Number(every) }
  }
  if (at !== undefined) {
    if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw invalidSchedule('at', 'must be a valid Date')
    return { timing: { at }, first: at.getTime() }
  }
  if (typeof cron !== 'string') throw invalidSchedule('cron', 'must be a string')
  const timing = { cron, ...(typeof timeZone === 'string' ? { timeZone } : {}) }
  const first = nextAfter(timing, now, now)
  if (first === undefined) throw invalidSchedule('cron', 'has no occurrence')
  return { timing, first }
}

function isTimeZone(name: unknown): name is string {
  try {
    return typeof name === 'string' && new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export function invalidSchedule(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid schedule: ${field} ${why}.`, { details: { field } })
}

/** More than clocks are ever set forward or back. */
const longestShiftMs = 4 * 3_600_000

/** How many minutes of a time zone are cached. */
const maxKnownMinutes = 1_000

/** The times of a cron expression. */
export interface CronTimes {
  /** The first time after this one, in milliseconds since the epoch; undefined when there is none. */
  nextAfter(after: number): number | undefined
}

/**
 * The times of a cron expression; throws for an invalid one. It refers to the wall clock of its time zone, by default that of the process.
 * When that clock is set, no occurrence is lost: a time that the clock skips occurs as much later as the clock is set forward, unless
 * another occurrence is at that moment; a time that it shows twice occurs the first time. Only an expression for every hour occurs whenever
 * the clock shows its time.
 */
export function cronOf(expression: string, timeZone?: string, field = 'cron'): CronTimes {
  if (/^\s*\d{4}-/.test(expression))
    throw new HeedError('invalid_argument', `${field}: '${expression}' is a date, not a cron expression. An example: '*/5 * * * *'.`, {
      details: { field },
    })
  let shown: Cron
  try {
    // Wall-clock times are computed as if they were UTC, where every time of day exists once.
    shown = new Cron(expression, { paused: true, timezone: 'UTC' })
  } catch (error) {
    throw new HeedError(
      'invalid_argument',
      `${field}: '${expression}' is not a cron expression: ${describe(error)}. An example: '*/5 * * * *'.`,
      { details: { field }, cause: error },
    )
  }
  const wall = new WallClock(timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone)
  const isHourly = isForEveryHour(expression)
  return { nextAfter: (after) => (isHourly ? soonAfter(shown, wall, after) : undefined) ?? firstAfter(shown, wall, after, isHourly) }
}

/**
 * An occurrence within the hour, before the clock is set again: one step, where `firstAfter` visits all times that may be skipped or shown
 * twice.
 */
function soonAfter(times: Cron, wall: WallClock, after: number): number | undefined {
  const ahead = wall.ahead(after)
  const shown = times.nextRun(new Date(after + ahead))
  const next = shown ? shown.getTime() - ahead : Number.POSITIVE_INFINITY
  if (next - after > 3_600_000 || wall.ahead(next) !== ahead) return undefined
  const before = wall.ahead(after - longestShiftMs)
  const skipped = before < ahead ? times.nextRun(new Date(after + before)) : null
  const { at, isShown } = skipped ? wall.whenShown(skipped.getTime()) : { at: next, isShown: true }
  return isShown ? next : Math.min(next, at)
}

function firstAfter(times: Cron, wall: WallClock, after: number, isHourly: boolean): number | undefined {
  let found: number | undefined
  for (let shown = times.nextRun(new Date(wall.earliestShown(after))); shown; shown = times.nextRun(shown)) {
    const { at, isShown, again } = wall.whenShown(shown.getTime())
    for (const one of isHourly && again !== undefined ? [at, again] : [at]) if (one > after) found = Math.min(found ?? one, one)
    // A time that is skipped or shown twice may occur after one that is shown behind it.
    if (isShown && at > after) return found
  }
  return found
}

/** Whether the expression restricts minutes and seconds only, not the hour. */
function isForEveryHour(expression: string): boolean {
  const fields = expression.trim().split(/\s+/)
  if (fields.length === 1) return fields[0]?.toLowerCase() === '@hourly'
  const hours = new Set<number>()
  for (const part of (fields[fields.length === 5 ? 1 : 2] ?? '').split(',')) {
    const range = /^(\d+)(?:-(\d+))?(?:\/([1-9]\d*))?$/.exec(part.replace('*', '0-23'))
    if (!range) return false
    const [, first, last = first, step = '1'] = range
    for (let hour = Number(first); hour <= Math.min(Number(last), 23); hour += Number(step)) hours.add(hour)
  }
  return hours.size === 24
}

/** The wall clock of a time zone. Its times are milliseconds as if they were UTC. */
class WallClock {
  readonly #format: Intl.DateTimeFormat
  /** Offsets by minute: clocks are set at whole minutes. */
  readonly #known = new Map<number, number>()

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en', {
      timeZone,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** No time after `at` is shown before this one. */
  earliestShown(at: number): number {
    const around = [at - longestShiftMs, at, at + longestShiftMs].map((time) => this.ahead(time))
    return at + this.ahead(at) - (Math.max(...around) - Math.min(...around))
  }

  /** When the clock shows this time, and `again`, if it does so twice; where it skips the time, as much later as it is set forward. */
  whenShown(shown: number): { at: number; isShown: boolean; again?: number } {
    const day = 86_400_000
    const [before, later] = [this.ahead(shown - day), this.ahead(shown + day)]
    const found = [before, later].filter((ahead) => this.ahead(shown - ahead) === ahead).map((ahead) => shown - ahead)
    if (found.length === 0) return { at: shown - before, isShown: false }
    const [at, again] = [Math.min(...found), Math.max(...found)]
    return { at, isShown: true, ...(again > at ? { again } : {}) }
  }

  /** The offset of the wall clock from UTC at a time. */
  ahead(at: number): number {
    const minute = Math.floor(at / 60_000)
    const known = this.#known.get(minute)
    if (known !== undefined) return known
    if (this.#known.size >= maxKnownMinutes) this.#known.clear()
    const ahead = this.#measure(minute * 60_000)
    this.#known.set(minute, ahead)
    return ahead
  }

  #measure(whole: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(whole).map(({ type, value }) => [type, value]))
    const year = parts.era === 'BC' ? 1 - Number(parts.year) : Number(parts.year)
    return (
      Date.UTC(year, Number(parts.month) - 1, Number(parts.day), Number(parts.hour), Number(parts.minute), Number(parts.second)) - whole
    )
  }
}
