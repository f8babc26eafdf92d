import type { MessageRow } from '../../message/row.ts'
import { startingSignals, type SignalState } from '../../machine.ts'
import type { MailboxRow, RowQuery, RunFilter, RunPage, RunRow, Scope } from '../contract/threads.ts'
import { scopedThread } from '../core/lease.ts'
import {
  mailboxRow, messageRow, rowsOfMail, runRow, type MailRecord, type RowRecord, type RunRecord, type ThreadRecord, type ThreadRef,
} from '../core/records.ts'
import { Conditions } from './conditions.ts'
import { mailColumns, rowColumns, runColumns, sql } from './sql.ts'
import type { Statements } from './statements.ts'
import type { SqlTables } from './tables.ts'

export function listSignals(
  statements: Statements, tables: SqlTables, scope: Scope, options: { states?: SignalState[]; limit?: number; after?: number },
): MailboxRow[] {
  const thread = scopedThread(tables, scope)
  const wanted = new Conditions().add('thread = ? AND ord > ?', thread.key, options.after ?? 0)
  if (options.states?.every((state) => state === 'pending')) wanted.add('open = 1')
  if (options.states) wanted.add('state IN (SELECT value FROM json_each(?))', JSON.stringify(options.states))
  const text = `SELECT ${mailColumns} FROM heed_mailbox ${wanted.where} ORDER BY ord LIMIT ?`
  const found = statements.all<MailRecord>(text, ...wanted.values, options.limit ?? -1)
  return found.map((mail) => mailboxRow(thread, mail, rowsOfMail(tables, thread, mail)))
}

const rowsOfMessages = `key IN (
  SELECT key FROM heed_messages WHERE thread = ? AND id IN (SELECT value FROM json_each(?)) AND message_id = id
  UNION ALL SELECT key FROM heed_messages WHERE thread = ? AND message_id IN (SELECT value FROM json_each(?)) AND message_id <> id)`

export function listRows(statements: Statements, tables: SqlTables, scope: Scope, query: RowQuery): { rows: MessageRow[]; more: boolean } {
  const thread = scopedThread(tables, scope)
  const wanted = new Conditions().add('thread = ?', thread.key)
  if (query.after !== undefined) wanted.add('seq > ?', query.after)
  if (query.before !== undefined) wanted.add('seq < ?', query.before)
  if (query.from) wanted.add('created_at >= ?', query.from.getTime())
  if (query.to) wanted.add('created_at <= ?', query.to.getTime())
  if (query.messageIds) wanted.add(rowsOfMessages, thread.key, JSON.stringify(query.messageIds), thread.key, JSON.stringify(query.messageIds))
  if (query.context !== true) wanted.add(`role <> 'context'`)
  const newestFirst = query.after === undefined
  const text = `SELECT ${rowColumns} FROM heed_messages ${wanted.where} ORDER BY seq ${newestFirst ? 'DESC' : 'ASC'} LIMIT ?`
  const found = statements.all<RowRecord>(text, ...wanted.values, query.limit + 1)
  const page = found.slice(0, query.limit)
  if (newestFirst) page.reverse()
  return { rows: page.map((row) => messageRow(thread, row)), more: found.length > page.length }
}

type HomedRun = RunRecord & { homeId: string; homeResource: string }

const homedRuns = `SELECT ${runColumns}, t.id AS homeId, t.resource_id AS homeResource FROM heed_runs r JOIN heed_threads t ON t.key = r.thread`

export function findRun(statements: Statements, runId: string): RunRow | null {
  const found = statements.one<HomedRun>(`${homedRuns} WHERE r.run_id = ? ORDER BY r.key DESC LIMIT 1`, runId)
  return found ? runRow(homeOf(found), found) : null
}

export function listRuns(statements: Statements, filter: RunPage): RunRow[] {
  const wanted = runConditions(filter)
  const text = `${homedRuns} ${wanted.where} ORDER BY r.key DESC LIMIT ? OFFSET ?`
  const found = statements.all<HomedRun>(text, ...wanted.values, filter.limit ?? -1, filter.offset ?? 0)
  return found.map((run) => runRow(homeOf(run), run))
}

export function countRuns(statements: Statements, filter: RunFilter): number {
  const wanted = runConditions(filter)
  return statements.one<{ total: number }>(`SELECT count(*) AS total FROM heed_runs r ${wanted.where}`, ...wanted.values)?.total ?? 0
}

function runConditions(filter: RunFilter): Conditions {
  const wanted = new Conditions()
  if (filter.threadId !== undefined) wanted.add('r.thread = (SELECT key FROM heed_threads WHERE id = ?)', filter.threadId)
  if (filter.resourceId !== undefined) wanted.add('r.resource_id = ?', filter.resourceId)
  if (filter.agentId !== undefined) wanted.add('r.agent_id = ?', filter.agentId)
  const waits = filter.status?.length === 1 && filter.status[0] === 'suspended'
  const at = waits ? 'r.suspended_at' : 'r.started_at'
  if (waits) wanted.add(`r.status = 'suspended'`)
  else if (filter.status) wanted.add('r.status IN (SELECT value FROM json_each(?))', JSON.stringify(filter.status))
  if (filter.from !== undefined) wanted.add(`${at} >= ?`, filter.from)
  if (filter.to !== undefined) wanted.add(`${at} <= ?`, filter.to)
  return wanted
}

function homeOf(run: HomedRun): ThreadRef {
  return { id: run.homeId, resourceId: run.homeResource }
}

export interface Orphan {
  threadId: string
  agentId: string
}

export function listOrphans(statements: Statements, tables: SqlTables, now: number, limit: number, agentIds?: readonly string[]): Orphan[] {
  const orphans: Orphan[] = []
  for (const orphan of orphansOf(statements, tables, now)) {
    if (orphans.length >= limit) break
    if (!agentIds || agentIds.includes(orphan.agentId)) orphans.push(orphan)
  }
  return orphans
}

const orphanPage = 200

function* orphansOf(statements: Statements, tables: SqlTables, now: number): Generator<Orphan> {
  for (let page: ThreadRecord[] | undefined; page === undefined || page.length === orphanPage;) {
    const last = page?.at(-1)
    page = statements.all<ThreadRecord>(sql.dueThreads, last?.dueAt ?? -1, last?.key ?? 0, orphanPage)
    for (const thread of page) {
      const agentId = thread.agentId ?? startingSignals(tables.pending(thread))[0]?.agentId
      if (agentId !== undefined) yield { threadId: thread.id, agentId }
    }
  }
  for (let owner = nextOwner(statements, ''); owner !== undefined; owner = nextOwner(statements, owner)) {
    if ((tables.aliveUntil(owner) ?? -Infinity) < now) yield* threadsOf(statements, owner)
  }
}

function* threadsOf(statements: Statements, owner: string): Generator<Orphan> {
  for (let page: Array<{ key: number; id: string; agentId: string }> | undefined; page === undefined || page.length === orphanPage;) {
    page = statements.all(sql.threadsOfOwner, owner, page?.at(-1)?.key ?? 0, orphanPage)
    for (const { id, agentId } of page) yield { threadId: id, agentId }
  }
}

function nextOwner(statements: Statements, after: string): string | undefined {
  return statements.one<{ owner: string }>(sql.nextOwner, after)?.owner
}
