import type { Scope } from '../contract/threads.ts'
import type { MessagePlace, MessageStart, MessageStartQuery } from '../contract/messages.ts'
import { scopedThread } from '../core/lease.ts'
import { startsMessage } from './copy-sql.ts'
import { Conditions } from './conditions.ts'
import type { Statements } from './statements.ts'
import type { SqlTables } from './tables.ts'

export function listMessageStarts(
  statements: Statements, tables: SqlTables, scope: Scope, query: MessageStartQuery,
): { starts: MessageStart[]; more: boolean } {
  const thread = scopedThread(tables, scope)
  const wanted = new Conditions().add('thread = ?', thread.key).add(startsMessage)
  if (query.after !== undefined) wanted.add('seq > ?', query.after)
  if (query.before !== undefined) wanted.add('seq < ?', query.before)
  if (query.from) wanted.add('created_at >= ?', query.from.getTime())
  if (query.to) wanted.add('created_at <= ?', query.to.getTime())
  const direction = query.after === undefined ? 'DESC' : 'ASC'
  const text = `SELECT seq, message_id AS messageId, created_at AS createdAt FROM heed_messages ${wanted.where} ORDER BY seq ${direction} LIMIT ?`
  const found = statements.all<{ seq: number; messageId: string; createdAt: number }>(text, ...wanted.values, query.limit + 1)
  const page = found.slice(0, query.limit).map(({ createdAt, ...start }) => ({ ...start, createdAt: new Date(createdAt) }))
  return { starts: page, more: found.length > page.length }
}

/** By the ids alone: rows that have their message's id, and those that have one of their own. */
export const findMessagesSql = `
  SELECT DISTINCT found.message_id AS messageId, t.id AS threadId, t.resource_id AS resourceId FROM (
    SELECT message_id, thread FROM heed_messages WHERE id IN (SELECT value FROM json_each(?1)) AND message_id = id AND role <> 'context'
    UNION ALL
    SELECT message_id, thread FROM heed_messages WHERE message_id IN (SELECT value FROM json_each(?1)) AND message_id <> id AND role <> 'context'
  ) found JOIN heed_threads t ON t.key = found.thread
  WHERE ?2 IS NULL OR t.resource_id = ?2`

export function findMessages(statements: Statements, messageIds: readonly string[], resourceId?: string): MessagePlace[] {
  return statements.all<MessagePlace>(findMessagesSql, JSON.stringify(messageIds), resourceId ?? null).map((place) => ({ ...place }))
}
