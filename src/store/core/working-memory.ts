import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { isObject, merged, without } from '../contract/working-memory.ts'
import type { InitialWorkingMemory, WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryValue, WorkingMemoryWriter } from '../contract/working-memory.ts'
import { fencedThread, forbidden, scopedThread } from './guard.ts'
import type { RunRecord, ThreadRecord, WorkingMemoryRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** So many versions are kept. */
const KEPT_VERSIONS = 100

/** A change of a run that does not count yet. */
interface Staged {
  owner: string
  change: WorkingMemoryChange
}

export function getWorkingMemory(tables: ThreadTables, of: WorkingMemoryOf, seat?: { threadId: string; runId: string }): WorkingMemoryRow | null {
  const owner = ownerOf(tables, of)
  const record = tables.workingMemory(owner)
  const thread = seat && tables.thread(seat.threadId)
  const run = thread && tables.run(thread, seat.runId)
  const seen = run ? withStaged(tables, owner, record, run) : record
  return seen ? rowOf(seen) : null
}

export function listWorkingMemory(tables: ThreadTables, of: WorkingMemoryOf, { limit, before }: { limit: number; before?: number }): WorkingMemoryRow[] {
  return tables.workingMemories(ownerOf(tables, of), before ?? Number.MAX_SAFE_INTEGER, limit).map(rowOf)
}

export function mergeWorkingMemory(tables: ThreadTables, of: WorkingMemoryOf, change: WorkingMemoryChange, by?: WorkingMemoryWriter): WorkingMemoryRow {
  const owner = ownerOf(tables, of)
  if (!by) return rowOf(write(tables, owner, change))
  const thread = fencedThread(tables, by.fence)
  if (of.scope === 'resource' && of.resourceId !== thread.resourceId) throw forbidden(thread.id)
  const run = by.staged ? tables.run(thread, by.runId) : undefined
  return rowOf(run ? stage(tables, thread, run, { owner, change }) : write(tables, owner, change))
}

/** Refuses what a thread's description says of working memory when it would be too much, before anything is written. */
export function checkWorkingMemory(tables: ThreadTables, thread: Pick<ThreadRecord, 'resourceId'> & { key?: ThreadRecord['key'] }, initial: InitialWorkingMemory | undefined): void {
  if (!initial) return
  const { key, resourceId } = thread
  const owner = initial.scope === 'resource' ? `r:${resourceId}` : key === undefined ? undefined : threadOwner({ key })
  changed(tables, owner ?? '', owner === undefined ? undefined : tables.workingMemory(owner), initial.change)
}

/** What a thread's description says of working memory. */
export function setWorkingMemory(tables: ThreadTables, thread: ThreadRecord, initial: InitialWorkingMemory | undefined): void {
  if (initial) write(tables, initial.scope === 'thread' ? threadOwner(thread) : `r:${thread.resourceId}`, initial.change)
}

/** A thread's own, with its versions, for a copy of the thread. */
export function copyWorkingMemory(tables: ThreadTables, from: ThreadRecord, to: ThreadRecord): void {
  const versions = tables.workingMemories(threadOwner(from), Number.MAX_SAFE_INTEGER, KEPT_VERSIONS)
  for (const version of versions.toReversed()) tables.addWorkingMemory(threadOwner(to), version, KEPT_VERSIONS)
}

/** What a run changed counts from now on: it is over, or new input sealed what came before it. The caller puts the run. */
export function applyStaged(tables: ThreadTables, run: RunRecord): void {
  if (run.staged === null) return
  // The run was told that these are kept. Others' changes meanwhile may have made it a little more than what is allowed.
  for (const { owner, change: { maxLength: _, ...change } } of stagedOf(run)) write(tables, owner, change)
  run.staged = null
}

function stage(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, { owner, change }: Staged): WorkingMemoryRecord {
  const before = withStaged(tables, owner, tables.workingMemory(owner), run)
  const known = stagedOf(run)
  if (before && change.id !== undefined && known.some((staged) => staged.change.id === change.id)) return before
  const after = changed(tables, owner, before, change)
  if (after === before) return after
  const { expectedVersion: _, ...rest } = change
  // What a version held is read now: it may be gone when the change counts.
  const staged: WorkingMemoryChange = 'restore' in rest ? { ...(rest.id === undefined ? {} : { id: rest.id }), set: JSON.parse(after.value) as WorkingMemoryValue } : rest
  run.staged = JSON.stringify([...known, { owner, change: staged }])
  tables.putRun(thread, run)
  return after
}

function withStaged(tables: ThreadTables, owner: string, record: WorkingMemoryRecord | undefined, run: RunRecord): WorkingMemoryRecord | undefined {
  let seen = record
  for (const staged of stagedOf(run)) {
    const { maxLength: _, ...change } = staged.change
    if (staged.owner === owner) seen = changed(tables, owner, seen, change)
  }
  return seen
}

function write(tables: ThreadTables, owner: string, change: WorkingMemoryChange): WorkingMemoryRecord {
  const before = tables.workingMemory(owner)
  if (before && change.id !== undefined && tables.hasWorkingMemoryChange(owner, change.id)) return before
  const after = changed(tables, owner, before, change)
  if (after !== before) tables.addWorkingMemory(owner, after, KEPT_VERSIONS)
  return after
}

/** What a change makes of what is there. The same record when it changes nothing. Refuses before anything is written. */
function changed(tables: ThreadTables, owner: string, before: WorkingMemoryRecord | undefined, change: WorkingMemoryChange): WorkingMemoryRecord {
  const version = before?.version ?? 0
  if (change.expectedVersion !== undefined && change.expectedVersion !== version) {
    throw new HeedError('working_memory_conflict', `Working memory has version ${version}, not ${change.expectedVersion}: somebody changed it. Read it again and decide anew.`, {
      details: { version, expectedVersion: change.expectedVersion },
    })
  }
  const value = JSON.stringify(valueOf(tables, owner, before, change))
  if (value === before?.value) return before
  const { length } = typeof JSON.parse(value) === 'string' ? (JSON.parse(value) as string) : value
  if (change.maxLength !== undefined && length > change.maxLength) {
    throw new HeedError('working_memory_too_large', `Working memory would have ${length} characters; ${change.maxLength} are allowed. Nothing was changed. Shorten it, or delete what is no longer needed.`, {
      details: { length, maxLength: change.maxLength },
    })
  }
  change.check?.(JSON.parse(value) as WorkingMemoryValue, before && (JSON.parse(before.value) as WorkingMemoryValue))
  return { version: version + 1, value, at: tables.now(), changeId: change.id ?? null }
}

function valueOf(tables: ThreadTables, owner: string, before: WorkingMemoryRecord | undefined, change: WorkingMemoryChange): WorkingMemoryValue {
  if ('set' in change) return change.set
  if ('restore' in change) {
    const wanted = change.restore === 'previous' ? (before?.version ?? 0) - 1 : change.restore
    // Before the first version there was nothing.
    if (wanted === 0 && before) return typeof JSON.parse(before.value) === 'string' ? '' : {}
    const found = tables.workingMemoryAt(owner, wanted)
    if (found) return JSON.parse(found.value) as WorkingMemoryValue
    throw new HeedError('working_memory_version_gone', `Working memory has no version ${wanted} to go back to. The last ${KEPT_VERSIONS} are kept.`, { details: { version: wanted } })
  }
  const base: unknown = before ? JSON.parse(before.value) : {}
  let value: JSONObject = merged(isObject(base) ? base : {}, change.merge)
  for (const path of change.remove ?? []) value = without(value, path)
  return value
}

function ownerOf(tables: ThreadTables, of: WorkingMemoryOf): string {
  return of.scope === 'resource' ? `r:${of.resourceId}` : threadOwner(scopedThread(tables, of))
}

/** Under which a thread's own is kept. Keys are never given twice. */
export function threadOwner({ key }: Pick<ThreadRecord, 'key'>): string {
  return `t:${key}`
}

function stagedOf(run: RunRecord): Staged[] {
  return run.staged === null ? [] : (JSON.parse(run.staged) as Staged[])
}

function rowOf({ version, value, at }: WorkingMemoryRecord): WorkingMemoryRow {
  return { version, value: JSON.parse(value) as WorkingMemoryValue, at }
}
