import { HeedError } from '../../../base/errors.ts'
import type { ChangeQuery, InboxChanges } from '../../contract/notifications.ts'
import { notificationOf, type NotificationRow } from './row.ts'
import { notificationSql as sql } from './sql.ts'
import type { Statements } from '../statements.ts'

/** Above every key: a cursor with it is behind all that has its number. */
const last = Number.MAX_SAFE_INTEGER

/** As in the index of changes. */
const span = 1024
/** So many are looked through at a time; a cursor that is further behind takes several looks. */
const mostSpans = 256

/** What changed after a cursor. All of it is one look at one state of the database, so that a short page reaches to where its cursor is. */
export function changesAfter(statements: Statements, { resourceId, threadId, after, limit }: ChangeQuery): InboxChanges {
  const edge = statements.one<{ last: number }>(sql.lastChange)?.last ?? 0
  const end = cursorOf(edge, last)
  if (after === undefined) return { changes: [], cursor: end, more: false }
  const { changed, key } = parse(after)
  const from = Math.floor(changed / span)
  const until = Math.min(from + mostSpans - 1, Math.floor(edge / span))
  const rows = until < from ? [] : statements.all<NotificationRow>(sql.changes, from, until, resourceId, changed, key, threadId ?? null, limit + 1)
  const changes = rows.slice(0, limit).map((row) => ({ record: notificationOf(row), cursor: cursorOf(row.changed, row.key) }))
  if (rows.length > limit) return { changes, cursor: changes.at(-1)?.cursor ?? after, more: true }
  const reached = (until + 1) * span - 1
  return reached < edge ? { changes, cursor: cursorOf(reached, last), more: true } : { changes, cursor: end, more: false }
}

function cursorOf(changed: number, key: number): string {
  return `${changed}.${key}`
}

function parse(cursor: string): { changed: number; key: number } {
  const [, changed, key] = /^(\d{1,15})\.(\d{1,16})$/.exec(cursor) ?? []
  if (changed !== undefined && key !== undefined) return { changed: Number(changed), key: Number(key) }
  throw new HeedError('invalid_argument', `'${cursor}' is no cursor of an inbox. Use the one of a change that was seen.`, { details: { field: 'after' } })
}
