import { HeedError } from '../base/errors.ts'
import { cronOf } from './cron.ts'
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
