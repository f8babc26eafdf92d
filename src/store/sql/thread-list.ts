import type { ThreadQuery, ThreadRow } from '../contract/threads.ts'
import { threadWithLanes } from '../core/threads.ts'
import type { ThreadRecord } from '../core/records.ts'
import { Conditions } from './conditions.ts'
import { threadColumns } from './sql.ts'
import type { Statements } from './statements.ts'
import type { SqlTables } from './tables.ts'

type Entry = [name: string, value: string | number | boolean | null]

/** Of the same JSON type and value, key by key; null is also what isn't there. */
const metadataMatches = `NOT EXISTS (
  SELECT 1 FROM json_each(?) want LEFT JOIN json_each(heed_threads.metadata) have ON have.key = want.key
  WHERE coalesce(have.type, 'null') <> want.type OR have.atom IS NOT want.atom)`

/** As the database writes it in its index of metadata. */
const entryMatches = `m.name = ? AND m.value = (SELECT type || ':' || atom FROM json_each(?))`
const indexedLength = 256

/** So many can be sorted in a few milliseconds. With more, going along the wanted order soon meets enough of them. */
const sortable = 10_000

/**
 * Threads in the wanted order, never by a scan. Metadata of one resource is indexed in both orders. Of all resources there are two ways:
 * by sorting the few that have the rarest of the wanted values, or along the wanted order, looking at each.
 */
export function listThreads(statements: Statements, tables: SqlTables, query: ThreadQuery): { threads: ThreadRow[]; more: boolean; total?: number } {
  const { field, direction } = query.orderBy ?? { field: 'updatedAt', direction: 'DESC' }
  const { driver, ordered } = wayOf(statements, query)
  const column = field === 'updatedAt' ? (ordered ? 'm.of_updated' : 'updated_at') : ordered ? 'm.of_time' : 'created_at'
  const id = ordered ? 'm.of_id' : 'id'
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
  const counted = query.total ? statements.one<{ total: number }>(`SELECT count(*) AS total FROM ${from} ${wanted.where}`, ...wanted.values) : undefined
  if (query.after) wanted.add(`(${column}, ${id}) ${direction === 'ASC' ? '>' : '<'} (?, ?)`, query.after.at, query.after.id)

  const text = `SELECT ${threadColumns} FROM ${from} ${wanted.where} ORDER BY ${column} ${direction}, ${id} ${direction} LIMIT ? OFFSET ?`
  const found = statements.all<ThreadRecord>(text, ...wanted.values, query.limit + 1, query.offset ?? 0)
  const page = found.slice(0, query.limit)
  return { threads: page.map((thread) => threadWithLanes(tables, thread)), more: found.length > page.length, ...(counted && { total: counted.total }) }
}

function entriesOf(query: ThreadQuery): Entry[] {
  return Object.entries(query.metadata ?? {})
}

/** The value to begin with, and whether its index has the wanted order. */
function wayOf(statements: Statements, query: ThreadQuery): { driver?: Entry; ordered: boolean } {
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
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM heed_thread_metadata m ${wanted.where} LIMIT ?)`
  return statements.one<{ count: number }>(text, ...wanted.values, sortable + 1)?.count ?? 0
}
