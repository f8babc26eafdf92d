import { Cron } from 'croner'
import { describe, HeedError } from '../base/errors.ts'
import type { ScheduleMissed, ScheduleTiming } from '../store/contract/schedules.ts'

const shortestMs = 1_000
/** A hundred years. */
const longestMs = 3_155_760_000_000
/** So late an occurrence is a missed one. */
const lateMs = 60_000
const maxMissed = 100

/** The first occurrence after a time; undefined when there is none any more. */
export function nextAfter(timing: ScheduleTiming, after: number, anchor: number): number | undefined {
  if ('at' in timing) return timing.at.getTime() > after ? timing.at.getTime() : undefined
  if ('every' in timing) return anchor + timing.every * (Math.floor(Math.max(0, after - anchor) / timing.every) + 1)
  return cronOf(timing.cron, timing.timeZone).nextAfter(after)
}

/** Which occurrences are sent now, where the one at `from` is due, and which comes next. */
export function occurrences(timing: ScheduleTiming, from: number, now: number, missed: ScheduleMissed): { send: number[]; nextAt: number | undefined } {
  const nextAt = nextAfter(timing, now, from)
  if (missed === 'skip' && now - from > lateMs) return { send: [], nextAt }
  const send = [from]
  if (missed === 'all') {
    for (let at = nextAfter(timing, from, from); at !== undefined && at <= now && send.length < maxMissed; at = nextAfter(timing, at, from)) send.push(at)
  }
  return { send, nextAt }
}

/** Refuses what is no timing, by name. Answers it without anything else, and its first occurrence. */
export function checkTiming(given: { cron?: unknown; timeZone?: unknown; every?: unknown; at?: unknown }, now: number): { timing: ScheduleTiming; first: number } {
  const { cron, timeZone, every, at } = given
  if ([cron, every, at].filter((value) => value !== undefined).length !== 1) throw wrong('cron', 'or every or at: a schedule needs exactly one of them')
  if (timeZone !== undefined && (cron === undefined || !isTimeZone(timeZone))) throw wrong('timeZone', "must be a name such as 'Europe/Zurich', beside a cron")
  if (every !== undefined) {
    if (!Number.isInteger(every) || Number(every) < shortestMs || Number(every) > longestMs) throw wrong('every', `must be a whole number of milliseconds, from ${shortestMs} to ${longestMs}`)
    return { timing: { every: Number(every) }, first: now + Number(every) }
  }
  if (at !== undefined) {
    if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw wrong('at', 'must be a valid Date')
    return { timing: { at }, first: at.getTime() }
  }
  if (typeof cron !== 'string') throw wrong('cron', 'must be a text')
  const timing = { cron, ...(typeof timeZone === 'string' ? { timeZone } : {}) }
  const first = nextAfter(timing, now, now)
  if (first === undefined) throw wrong('cron', 'never comes')
  return { timing, first }
}

function isTimeZone(name: unknown): name is string {
  try {
    return typeof name === 'string' && new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

export function wrong(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid schedule: ${field} ${why}.`, { details: { field } })
}

/** The longest that clocks are set forward or back, and then some. */
const longestShiftMs = 4 * 3_600_000

/** So many minutes are remembered of a clock. */
const mostKnown = 1_000

/** The times of a cron expression. */
export interface CronTimes {
  /** The first time after this one; undefined when there is none any more. Milliseconds since the epoch. */
  nextAfter(after: number): number | undefined
}

/**
 * A cron expression, or an error that names it. It is about the clock on the wall: of its time zone, or else of this process.
 *
 * When that clock is set, none of its times is lost. A time that the clock skips comes as much later as the clock is set forward, unless another comes at that moment; one that it
 * shows twice comes the first time. Only what is for every hour, in which the hour says nothing, comes whenever the clock shows it.
 */
export function cronOf(expression: string, timeZone?: string, field = 'cron'): CronTimes {
  if (/^\s*\d{4}-/.test(expression)) throw new HeedError('invalid_argument', `${field}: '${expression}' is a date and no cron expression. An example: '*/5 * * * *'.`, { details: { field } })
  let shown: Cron
  try {
    // What the wall shows is counted as if it were UTC, where every time of day is there once.
    shown = new Cron(expression, { paused: true, timezone: 'UTC' })
  } catch (error) {
    throw new HeedError('invalid_argument', `${field}: '${expression}' is no cron expression: ${describe(error)}. An example: '*/5 * * * *'.`, { details: { field }, cause: error })
  }
  const wall = new WallClock(timeZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone)
  const isHourly = isForEveryHour(expression)
  return { nextAfter: (after) => (isHourly ? soonAfter(shown, wall, after) : undefined) ?? firstAfter(shown, wall, after, isHourly) }
}

/** What comes within the hour, before the clock is set again: one look, where `firstAfter` goes through all that may be skipped or shown twice. */
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
    // What is skipped, or shown again, may come after what is shown behind it.
    if (isShown && at > after) return found
  }
  return found
}

/** Minutes and seconds alone say when it comes: its hours are all of them. */
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

/** What the clock of a time zone shows. Shown times are milliseconds as if they were UTC. */
class WallClock {
  readonly #format: Intl.DateTimeFormat
  /** What was found out, by the minute: clocks are set at whole ones. */
  readonly #known = new Map<number, number>()

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en', {
      timeZone, hourCycle: 'h23', era: 'short', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
    })
  }

  /** Nothing that comes after this time is shown before it. */
  earliestShown(at: number): number {
    const around = [at - longestShiftMs, at, at + longestShiftMs].map((time) => this.ahead(time))
    return at + this.ahead(at) - (Math.max(...around) - Math.min(...around))
  }

  /** When the clock shows this, and `again`, if it does so twice; where it never does, as much later as it was set forward. */
  whenShown(shown: number): { at: number; isShown: boolean; again?: number } {
    const day = 86_400_000
    const [before, later] = [this.ahead(shown - day), this.ahead(shown + day)]
    const found = [before, later].filter((ahead) => this.ahead(shown - ahead) === ahead).map((ahead) => shown - ahead)
    if (found.length === 0) return { at: shown - before, isShown: false }
    const [at, again] = [Math.min(...found), Math.max(...found)]
    return { at, isShown: true, ...(again > at ? { again } : {}) }
  }

  /** By how much what is shown at a time is ahead of UTC. */
  ahead(at: number): number {
    const minute = Math.floor(at / 60_000)
    const known = this.#known.get(minute)
    if (known !== undefined) return known
    if (this.#known.size >= mostKnown) this.#known.clear()
    const ahead = this.#measure(minute * 60_000)
    this.#known.set(minute, ahead)
    return ahead
  }

  #measure(whole: number): number {
    const parts = Object.fromEntries(this.#format.formatToParts(whole).map(({ type, value }) => [type, value]))
    const year = parts.era === 'BC' ? 1 - Number(parts.year) : Number(parts.year)
    return Date.UTC(year, Number(parts.month) - 1, Number(parts.day), Number(parts.hour), Number(parts.minute), Number(parts.second)) - whole
  }
}
