import { HeedError } from '../errors.ts'
import { notificationPriorities, notificationStatuses } from './notification-states.ts'
import type { MarkedStatus, NotificationQuery } from './notifications.ts'

const usualLimit = 100
const longest = 10_000
const marks: readonly string[] = ['seen', 'dismissed', 'archived'] satisfies MarkedStatus[]

/** Refuses by name what no list of notifications can be asked for. Answers how long it may be. */
export function checkQuery({ threadId, status, priority, limit = usualLimit }: NotificationQuery): number {
  if (typeof threadId !== 'string' || threadId === '') throw wrong('threadId', 'is missing or no text')
  for (const one of [status ?? []].flat()) if (!notificationStatuses.includes(one)) throw wrong('status', `must be of ${notificationStatuses.join(', ')}`)
  for (const one of [priority ?? []].flat()) if (!notificationPriorities.includes(one)) throw wrong('priority', `must be of ${notificationPriorities.join(', ')}`)
  if (!Number.isInteger(limit) || limit < 1 || limit > longest) throw wrong('limit', `must be a whole number from 1 to ${longest}`)
  return limit
}

export function checkIds(ids: readonly string[]): readonly string[] {
  if (Array.isArray(ids) && ids.every((id) => typeof id === 'string')) return ids
  throw wrong('ids', 'must be a list of ids')
}

/** What Heed alone decides, such as `delivered`, can't be marked. */
export function checkMark(ids: readonly string[], status: MarkedStatus): readonly string[] {
  if (!marks.includes(status)) throw wrong('status', `must be one of ${marks.join(', ')}`)
  return checkIds(ids)
}

function wrong(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid call of an inbox: ${field} ${why}.`, { details: { field } })
}
