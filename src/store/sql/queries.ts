import type { SqlValue, Statements } from './statements.ts'
import type { MessageRow } from '../../message/row.ts'
import { startingSignals, type SignalState } from '../../machine.ts'
import type { MailboxRow, RowQuery, RunFilter, RunPage, RunRow, Scope, ThreadQuery, ThreadRow } from '../contract/threads.ts'
import { isAlive, scopedThread } from '../core/lease.ts'
import {
  mailboxRow, messageRow, rowsOfMail, runRow, type MailRecord, type RowRecord, type RunRecord, type ThreadRecord, type ThreadRef,
} from '../core/records.ts'
import { mailColumns, noLimit, rowColumns, runColumns, sql, startsMessage, threadColumns } from './sql.ts'
import type { SqlTables } from './tables.ts'
import type { MessagePlace, MessageStart, MessageStartQuery } from '../contract/messages.ts'
import { threadWithLanes } from '../core/threads.ts'

/** Conditions joined by AND, with their values. The text has only the conditions that a query needs, so that SQLite can use an index. */
class Conditions {
  readonly #texts: string[] = []
  readonly values: SqlValue[] = []

  add(text: string, ...values: SqlValue[]): this {
    this.#texts.push(text)
    this.values.push(...values)
    return this
  }

  get where(): string {
    return this.#texts.length === 0 ? '' : `WHERE ${this.#texts.join(' AND ')}`
  }
}

/** The first epoch of the thread with this id, or the one that a new thread would get. */
export function lifeOf(statements: Statements, threadId: string): number {
  return statements.one<{ life: number }>(sql.life, threadId)?.life ?? 0
}

export function listSignals(
  statements: Statements, tables: SqlTables, scope: Scope,
  options: { states?: SignalState[]; limit?: number; after?: number; before?: number },
): MailboxRow[] {
  const thread = scopedThread(tables, scope)
  const wanted = new Conditions().add('thread = ? AND ord > ?', thread.key, options.after ?? 0)
  // Records of decisions are in the mailbox, and are no signals.
  if (options.before !== undefined) wanted.add(`ord < ? AND (rows <> '[]' OR id NOT LIKE 'deci%:%')`, options.before)
  if (options.states?.every((state) => state === 'pending')) wanted.add('open = 1')
  if (options.states) wanted.add('state IN (SELECT value FROM json_each(?))', JSON.stringify(options.states))
  const text = `SELECT ${mailColumns} FROM heed_mailbox ${wanted.where} ORDER BY ord${options.before === undefined ? '' : ' DESC'} LIMIT ?`
  const found = statements.all<MailRecord>(text, ...wanted.values, options.limit ?? noLimit)
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
  if (query.messageIds)
    wanted.add(rowsOfMessages, thread.key, JSON.stringify(query.messageIds), thread.key, JSON.stringify(query.messageIds))
  if (query.context !== true) wanted.add(`role <> 'context'`)
  const newestFirst = query.after === undefined
  const text = `SELECT ${rowColumns} FROM heed_messages ${wanted.where} ORDER BY seq ${newestFirst ? 'DESC' : 'ASC'} LIMIT ?`
  const found = statements.all<RowRecord>(text, ...wanted.values, query.limit + 1)
  const page = found.slice(0, query.limit)
  if (newestFirst) page.reverse()
  return { rows: page.map((row) => messageRow(thread, row)), more: found.length > page.length }
}

type RunOfThread = RunRecord & { threadId: string; threadResource: string }

const selectRuns = `
  SELECT ${runColumns}, t.id AS threadId, t.resource_id AS threadResource FROM heed_runs r JOIN heed_threads t ON t.key = r.thread`

export function findRun(statements: Statements, runId: string): RunRow | null {
  const found = statements.one<RunOfThread>(`${selectRuns} WHERE r.run_id = ? ORDER BY r.key DESC LIMIT 1`, runId)
  return found ? runRow(threadOf(found), found) : null
}

export function listRuns(statements: Statements, filter: RunPage): RunRow[] {
  const wanted = runConditions(filter)
  const text = `${selectRuns} ${wanted.where} ORDER BY r.key DESC LIMIT ? OFFSET ?`
  const found = statements.all<RunOfThread>(text, ...wanted.values, filter.limit ?? noLimit, filter.offset ?? 0)
  return found.map((run) => runRow(threadOf(run), run))
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
  const onlySuspended = filter.status?.length === 1 && filter.status[0] === 'suspended'
  const at = onlySuspended ? 'r.suspended_at' : 'r.started_at'
  if (onlySuspended) wanted.add(`r.status = 'suspended'`)
  else if (filter.status) wanted.add('r.status IN (SELECT value FROM json_each(?))', JSON.stringify(filter.status))
  if (filter.from !== undefined) wanted.add(`${at} >= ?`, filter.from)
  if (filter.to !== undefined) wanted.add(`${at} <= ?`, filter.to)
  return wanted
}

function threadOf(run: RunOfThread): ThreadRef {
  return { id: run.threadId, resourceId: run.threadResource }
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
    if (!isAlive(tables, owner, now)) yield* threadsOf(statements, owner)
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
  const text = `
    SELECT seq, message_id AS messageId, created_at AS createdAt FROM heed_messages ${wanted.where}
    ORDER BY seq ${direction} LIMIT ? OFFSET ?`
  const values = [...wanted.values, query.limit + 1, query.offset ?? 0]
  const found = statements.all<{ seq: number; messageId: string; createdAt: number }>(text, ...values)
  const page = found.slice(0, query.limit).map(({ createdAt, ...start }) => ({ ...start, createdAt: new Date(createdAt) }))
  return { starts: page, more: found.length > page.length }
}

/** The number of messages of a thread; with `before`, of those that begin below this `seq`. */
export function countMessages(statements: Statements, tables: SqlTables, scope: Scope, before: number | undefined): number {
  const thread = scopedThread(tables, scope)
  const wanted = new Conditions().add('thread = ?', thread.key).add(startsMessage)
  if (before !== undefined) wanted.add('seq < ?', before)
  return statements.one<{ total: number }>(`SELECT count(*) AS total FROM heed_messages ${wanted.where}`, ...wanted.values)?.total ?? 0
}

/** Finds messages by id in all threads. A row of a message has the id of the message or an id of its own; each case has its index. */
export const findMessagesSql = `
  SELECT DISTINCT found.message_id AS messageId, t.id AS threadId, t.resource_id AS resourceId FROM (
    SELECT message_id, thread FROM heed_messages WHERE id IN (SELECT value FROM json_each(?1)) AND message_id = id AND role <> 'context'
    UNION ALL
    SELECT message_id, thread FROM heed_messages
    WHERE message_id IN (SELECT value FROM json_each(?1)) AND message_id <> id AND role <> 'context'
  ) found JOIN heed_threads t ON t.key = found.thread
  WHERE ?2 IS NULL OR t.resource_id = ?2`

export function findMessages(statements: Statements, messageIds: readonly string[], resourceId?: string): MessagePlace[] {
  return statements.all<MessagePlace>(findMessagesSql, JSON.stringify(messageIds), resourceId ?? null).map((place) => ({ ...place }))
}

type Entry = [name: string, value: string | number | boolean | null]

/** Each wanted key has the same JSON type and value; null also matches a missing key. */
export const metadataMatches = `NOT EXISTS (
  SELECT 1 FROM json_each(?) want LEFT JOIN json_each(heed_threads.metadata) have ON have.key = want.key
  WHERE coalesce(have.type, 'null') <> want.type OR have.atom IS NOT want.atom)`

/** The value in the form that the triggers of the metadata table write. */
export const entryMatches = `m.name = ? AND m.value = (SELECT type || ':' || atom FROM json_each(?))`
const indexedLength = 256

/** SQLite sorts this many threads in a few milliseconds. If more match, a scan in the wanted order soon finds a page of them. */
const sortable = 10_000

/**
 * Lists threads in the wanted order, by an index. The metadata of one resource is indexed in both orders. For all resources it either sorts
 * the threads that have the rarest of the wanted values, or reads all threads in the wanted order and compares their metadata.
 */
export function listThreads(
  statements: Statements,
  tables: SqlTables,
  query: ThreadQuery,
): { threads: ThreadRow[]; more: boolean; total?: number } {
  const { field, direction } = query.orderBy ?? { field: 'updatedAt', direction: 'DESC' }
  const { driver, ordered } = chooseIndex(statements, query)
  const column = field === 'updatedAt' ? (ordered ? 'm.of_updated' : 'updated_at') : ordered ? 'm.of_time' : 'created_at'
  // Threads of one millisecond are in the order in which they were created, whatever their ids are.
  const key = ordered ? 'm.thread' : 'heed_threads.key'
  const from = driver ? 'heed_thread_metadata m CROSS JOIN heed_threads ON heed_threads.key = m.thread' : 'heed_threads'

  const wanted = new Conditions()
  if (driver) wanted.add(entryMatches, driver[0], JSON.stringify([driver[1]]))
  if (query.resourceId !== undefined) wanted.add(driver ? 'm.of_resource = ?' : 'resource_id = ?', query.resourceId)
  if (query.status) wanted.add('status IN (SELECT value FROM json_each(?))', JSON.stringify(query.status))
  if (query.status && !query.status.includes('idle')) wanted.add(`status <> 'idle'`)
  if (query.cloneOf !== undefined) wanted.add(`json_extract(metadata, '$.clone.sourceThreadId') = ?`, query.cloneOf)
  if (query.parentId === null) wanted.add('parent_id IS NULL')
  else if (query.parentId !== undefined) wanted.add('parent_id = ?', query.parentId)
  const rest = Object.fromEntries(entriesOf(query).filter(([name]) => name !== driver?.[0]))
  if (Object.keys(rest).length > 0) wanted.add(metadataMatches, JSON.stringify(rest))
  const counted = query.total
    ? statements.one<{ total: number }>(`SELECT count(*) AS total FROM ${from} ${wanted.where}`, ...wanted.values)
    : undefined
  if (query.after) {
    // A thread that was deleted since has no key: those of its millisecond are listed again rather than left out.
    const [beyond, none] = direction === 'ASC' ? ['>', 0] : ['<', Number.MAX_SAFE_INTEGER]
    const after = '(?, coalesce((SELECT a.key FROM heed_threads a WHERE a.id = ?), ?))'
    wanted.add(`(${column}, ${key}) ${beyond} ${after}`, query.after.at, query.after.id, none)
  }

  const text = `SELECT ${threadColumns} FROM ${from} ${wanted.where} ORDER BY ${column} ${direction}, ${key} ${direction} LIMIT ? OFFSET ?`
  const found = statements.all<ThreadRecord>(text, ...wanted.values, query.limit + 1, query.offset ?? 0)
  const page = found.slice(0, query.limit)
  return {
    threads: page.map((thread) => threadWithLanes(tables, thread)),
    more: found.length > page.length,
    ...(counted && { total: counted.total }),
  }
}

function entriesOf(query: ThreadQuery): Entry[] {
  return Object.entries(query.metadata ?? {})
}

/** The metadata entry whose index to use, and whether that index has the wanted order. */
function chooseIndex(statements: Statements, query: ThreadQuery): { driver?: Entry; ordered: boolean } {
  const indexed = entriesOf(query).filter(([, value]) => value !== null && String(value).length <= indexedLength)
  if (indexed.length === 0) return { ordered: false }
  const ordered = query.resourceId !== undefined
  const [only] = indexed
  if (ordered && indexed.length === 1 && only) return { driver: only, ordered }
  const counts = indexed.map((entry) => ({ entry, count: countOf(statements, entry, query.resourceId) }))
  const rarest = counts.reduce((least, other) => (other.count < least.count ? other : least))
  return ordered || rarest.count <= sortable ? { driver: rarest.entry, ordered } : { ordered: false }
}

function countOf(statements: Statements, [name, value]: Entry, resourceId: string | undefined): number {
  const wanted = new Conditions().add(entryMatches, name, JSON.stringify([value]))
  if (resourceId !== undefined) wanted.add('m.of_resource = ?', resourceId)
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM heed_thread_metadata m ${wanted.where} LIMIT ?) AS few`
  return statements.one<{ count: number }>(text, ...wanted.values, sortable + 1)?.count ?? 0
}
