import { isName } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { MAX_SIGNAL_BYTES } from '../../signals/contents.ts'
import type { InboxScope, MarkedStatus, NotificationPriority, NotificationQuery, NotificationStatus } from './notifications.ts'

/**
 * The transitions of a record's status, the same in every store. Only Heed discards or fails a pending record. A record that was dismissed
 * or archived stays so. A failed record may be retried, or is discarded if its event has another record.
 */
const statusTransitions: Record<NotificationStatus, readonly NotificationStatus[]> = {
  pending: ['delivered', 'seen', 'dismissed', 'archived', 'discarded', 'failed'],
  delivered: ['seen', 'dismissed', 'archived', 'failed'],
  seen: ['dismissed', 'archived'],
  dismissed: ['archived'],
  archived: [],
  discarded: [],
  failed: ['pending', 'seen', 'dismissed', 'archived', 'discarded'],
}

export function canBecome(status: NotificationStatus, next: NotificationStatus): boolean {
  return statusTransitions[status].includes(next)
}

export const notificationStatuses = Object.keys(statusTransitions) as NotificationStatus[]

/** The most urgent first. */
export const notificationPriorities: readonly NotificationPriority[] = ['urgent', 'high', 'medium', 'low']

const defaultLimit = 100
const maxLimit = 10_000
const markedStatuses: readonly string[] = ['seen', 'dismissed', 'archived'] satisfies MarkedStatus[]
const queryFields = new Set(['threadId', 'resourceId', 'status', 'priority', 'source', 'kind', 'search', 'limit', 'after'])

/** The maximum length of the id of a notification. Ids of its signals are derived from it, and those have a maximum length too. */
export const maxNotificationId = 200

/** The maximum length of a search: databases limit the length of a pattern. */
export const maxSearchLength = 1_000

/** Rejects an invalid query by the name of its field. Returns the limit. */
export function validateQuery(query: NotificationQuery): number {
  validateInboxScope(query)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && !queryFields.has(name)) throw invalidField(name, `is not known. Known: ${[...queryFields].join(', ')}`)
  }
  const { status, priority, source, kind, search, after, limit = defaultLimit } = query
  for (const [field, value] of Object.entries({ source, kind, search, after })) {
    if (value !== undefined && typeof value !== 'string') throw invalidField(field, 'must be a string')
  }
  if (search !== undefined && search !== '' && (!isName(search) || search.length > maxSearchLength)) {
    throw invalidField('search', `must be a string of at most ${maxSearchLength} characters (well-formed Unicode, no NUL)`)
  }
  for (const one of [status ?? []].flat()) {
    if (!notificationStatuses.includes(one)) throw invalidField('status', `must be one of ${notificationStatuses.join(', ')}`)
  }
  for (const one of [priority ?? []].flat()) {
    if (!notificationPriorities.includes(one)) throw invalidField('priority', `must be one of ${notificationPriorities.join(', ')}`)
  }
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) throw invalidField('limit', `must be an integer from 1 to ${maxLimit}`)
  return limit
}

export function validateInboxScope(scope: InboxScope): void {
  const { threadId, resourceId }: Partial<InboxScope> = typeof scope === 'object' && scope !== null ? scope : {}
  if (typeof threadId !== 'string' || threadId === '') throw invalidField('threadId', 'is missing or is not a string')
  if (resourceId !== undefined && typeof resourceId !== 'string') throw invalidField('resourceId', 'must be a string')
}

export function validateId(id: string): string {
  if (typeof id === 'string') return id
  throw invalidField('id', 'must be a string')
}

export function validateIds(ids: readonly string[]): readonly string[] {
  if (Array.isArray(ids) && ids.every((id) => typeof id === 'string')) return ids
  throw invalidField('ids', 'must be an array of strings')
}

/** Rejects a status that only Heed sets, such as `delivered`. Returns the ids. */
export function validateMark(ids: readonly string[], status: MarkedStatus): readonly string[] {
  if (!markedStatuses.includes(status)) throw invalidField('status', `must be one of ${markedStatuses.join(', ')}`)
  return validateIds(ids)
}

/** Rejects a text that is too long to store. With a `coalesceKey`, the joined text counts. Returns the text. */
export function validateTextSize(text: string, field: string): string {
  const bytes = Buffer.byteLength(text)
  if (bytes <= MAX_SIGNAL_BYTES) return text
  const problem = `${field} has ${bytes} bytes, counted with the text that its coalesceKey joins`
  throw new HeedError('invalid_argument', `Invalid notification: ${problem}; at most ${MAX_SIGNAL_BYTES} are allowed.`, {
    details: { field, bytes, limit: MAX_SIGNAL_BYTES },
  })
}

function invalidField(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid inbox call: ${field} ${why}.`, { details: { field } })
}
