import { HeedError } from '../../errors.ts'
import type { ChangeQuery, InboxChanges } from '../notifications.ts'
import { notificationOf, type NotificationRow } from './notification-row.ts'
import { notificationSql as sql } from './notification-sql.ts'
import type { Statements } from './statements.ts'

/** Above every key: a cursor with it is behind all that has its number. */
const last = Number.MAX_SAFE_INTEGER

/** What changed after a cursor. All of it is one look at one state of the database, so that a short page reaches to its end. */
export function changesAfter(statements: Statements, { resourceId, threadId, after, limit }: ChangeQuery): InboxChanges {
  const edge = statements.one<{ last: number }>(sql.lastChange)?.last ?? 0
  const end = cursorOf(edge, last)
  if (after === undefined) return { changes: [], cursor: end, more: false }
  const { changed, key } = parse(after)
  const rows = statements.all<NotificationRow>(sql.changes, resourceId, changed, key, threadId ?? null, limit + 1)
  const changes = rows.slice(0, limit).map((row) => ({ record: notificationOf(row), cursor: cursorOf(row.changed, row.key) }))
  const more = rows.length > limit
  return { changes, cursor: more ? (changes.at(-1)?.cursor ?? after) : end, more }
}

function cursorOf(changed: number, key: number): string {
  return `${changed}.${key}`
}

function parse(cursor: string): { changed: number; key: number } {
  const [, changed, key] = /^(\d{1,15})\.(\d{1,16})$/.exec(cursor) ?? []
  if (changed !== undefined && key !== undefined) return { changed: Number(changed), key: Number(key) }
  throw new HeedError('invalid_argument', `'${cursor}' is no cursor of an inbox. Use the one of a change that was seen.`, { details: { field: 'after' } })
}
