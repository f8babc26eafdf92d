import { isName } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { notificationPriorities, notificationStatuses } from './notification-states.ts'
import type { InboxScope, MarkedStatus, NotificationQuery } from './notifications.ts'

const usualLimit = 100
const longest = 10_000
const marks: readonly string[] = ['seen', 'dismissed', 'archived'] satisfies MarkedStatus[]

const filters = new Set(['threadId', 'resourceId', 'status', 'priority', 'source', 'kind', 'search', 'limit', 'after'])
/** So many characters may be searched for: what a database takes for a pattern is limited. */
export const longestSearch = 1_000

function isSearch(search: string): boolean {
  return search === '' || (isName(search) && search.length <= longestSearch)
}

/** Refuses by name what no list of notifications can be asked for. Answers how long it may be. */
export function checkQuery(query: NotificationQuery): number {
  checkScope(query)
  for (const [name, value] of Object.entries(query)) if (value !== undefined && !filters.has(name)) throw wrong(name, `is not known. Known: ${[...filters].join(', ')}`)
  const { status, priority, source, kind, search, after, limit = usualLimit } = query
  for (const [field, value] of Object.entries({ source, kind, search, after })) if (value !== undefined && typeof value !== 'string') throw wrong(field, 'must be a text')
  if (search !== undefined && !isSearch(search)) throw wrong('search', `must be a text of up to ${longestSearch} whole characters without NUL`)
  for (const one of [status ?? []].flat()) if (!notificationStatuses.includes(one)) throw wrong('status', `must be of ${notificationStatuses.join(', ')}`)
  for (const one of [priority ?? []].flat()) if (!notificationPriorities.includes(one)) throw wrong('priority', `must be of ${notificationPriorities.join(', ')}`)
  if (!Number.isInteger(limit) || limit < 1 || limit > longest) throw wrong('limit', `must be a whole number from 1 to ${longest}`)
  return limit
}

/** Whose inbox it is. */
export function checkScope(scope: InboxScope): void {
  const { threadId, resourceId }: Partial<InboxScope> = typeof scope === 'object' && scope !== null ? scope : {}
  if (typeof threadId !== 'string' || threadId === '') throw wrong('threadId', 'is missing or no text')
  if (resourceId !== undefined && typeof resourceId !== 'string') throw wrong('resourceId', 'must be a text')
}

export function checkId(id: string): string {
  if (typeof id === 'string') return id
  throw wrong('id', 'must be a text')
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
