import { HeedError } from '../../base/errors.ts'
import { isObject, type JSONObject } from '../../base/json.ts'
import { joinTaint } from '../../message/taint.ts'
import { applyMergePatch, withoutPath } from '../contract/working-memory.ts'
import type {
  InitialWorkingMemory, WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow, WorkingMemoryValue, WorkingMemoryWriter,
} from '../contract/working-memory.ts'
import { fencedThread, scopedThread, threadForbidden } from './lease.ts'
import { byteLength, type RunRecord, type ThreadRecord, type WorkingMemoryRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** The number of versions that are kept. */
const KEPT_VERSIONS = 100

/** A change by a run that takes effect when the run ends or is sealed. */
interface StagedChange {
  owner: string
  change: WorkingMemoryChange
}

export function getWorkingMemory(
  tables: ThreadTables, of: WorkingMemoryOf, reader?: { threadId: string; runId: string },
): WorkingMemoryRow | null {
  const owner = ownerOf(tables, of)
  const record = tables.workingMemory.newest(owner)
  const thread = reader && tables.thread(reader.threadId)
  const run = thread && tables.run(thread, reader.runId)
  const current = run ? withStaged(tables, owner, record, run) : record
  return current ? workingMemoryRow(current) : null
}

export function listWorkingMemory(
  tables: ThreadTables, of: WorkingMemoryOf, { limit, before = Number.MAX_SAFE_INTEGER }: { limit: number; before?: number },
): WorkingMemoryRow[] {
  return tables.workingMemory.list(ownerOf(tables, of), before, limit).map(workingMemoryRow)
}

export function mergeWorkingMemory(
  tables: ThreadTables, of: WorkingMemoryOf, change: WorkingMemoryChange, by?: WorkingMemoryWriter,
): WorkingMemoryRow {
  tables.lock?.([...(by ? [by.fence.threadId] : []), ...(of.scope === 'thread' ? [of.threadId] : [])])
  const owner = ownerOf(tables, of)
  if (!by) {
    const resourceId = of.scope === 'resource' ? of.resourceId : scopedThread(tables, of).resourceId
    return workingMemoryRow(writeChange(tables, owner, change, resourceId))
  }
  const thread = fencedThread(tables, by.fence)
  if (of.scope === 'resource' && of.resourceId !== thread.resourceId) throw threadForbidden(thread.id)
  const run = by.staged ? tables.run(thread, by.runId) : undefined
  return workingMemoryRow(run ? stage(tables, thread, run, { owner, change }) : writeChange(tables, owner, change))
}

/** Rejects the working memory that comes with a thread if the change is not allowed, before the first write. Returns the bytes it adds. */
export function checkWorkingMemory(
  tables: ThreadTables, thread: Pick<ThreadRecord, 'resourceId'> & { key?: ThreadRecord['key'] }, initial: InitialWorkingMemory,
): number {
  const { key, resourceId } = thread
  const owner = initial.scope === 'resource' ? resourceOwner(resourceId) : key === undefined ? undefined : threadOwner({ key })
  const before = owner === undefined ? undefined : tables.workingMemory.newest(owner)
  const after = applyChange(tables, owner ?? '', before, initial.change)
  return after === before ? 0 : addedBytes(tables, owner ?? '', after)
}

/** Writes the working memory that comes with a thread. */
export function setWorkingMemory(tables: ThreadTables, thread: ThreadRecord, initial: InitialWorkingMemory): void {
  writeChange(tables, initial.scope === 'thread' ? threadOwner(thread) : resourceOwner(thread.resourceId), initial.change)
}

/** Copies the working memory of a thread to a copy of the thread, with its versions. */
export function copyWorkingMemory(tables: ThreadTables, from: ThreadRecord, to: ThreadRecord): void {
  const versions = tables.workingMemory.list(threadOwner(from), Number.MAX_SAFE_INTEGER, KEPT_VERSIONS)
  for (const version of versions.toReversed()) tables.workingMemory.add(threadOwner(to), version, KEPT_VERSIONS)
}

/** Makes the staged changes of a run take effect, because it ended or was sealed by new input. The caller puts the run. */
export function applyStaged(tables: ThreadTables, run: RunRecord): void {
  // The length was checked when they were staged. It is not checked again, even if other changes made working memory longer since then.
  for (const { owner, change: { maxLength: _, ...change } } of stagedChanges(run)) writeChange(tables, owner, change)
  run.staged = null
}

function stage(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, { owner, change }: StagedChange): WorkingMemoryRecord {
  const before = withStaged(tables, owner, tables.workingMemory.newest(owner), run)
  const known = stagedChanges(run)
  if (before && change.id !== undefined && known.some((staged) => staged.change.id === change.id)) return before
  const after = applyChange(tables, owner, before, change)
  if (after === before) return after
  const { expectedVersion: _, ...rest } = change
  // The restored version is read now: it may be removed before the change takes effect.
  const staged: WorkingMemoryChange = 'restore' in rest
    ? { ...(rest.id === undefined ? {} : { id: rest.id }), set: JSON.parse(after.value) as WorkingMemoryValue, taintedBy: taintOf(after) }
    : rest
  run.staged = JSON.stringify([...known, { owner, change: staged }])
  tables.putRun(thread, run)
  return after
}

/** A record as a run reads it: with the changes that the run has staged. */
function withStaged(
  tables: ThreadTables, owner: string, record: WorkingMemoryRecord | undefined, run: RunRecord,
): WorkingMemoryRecord | undefined {
  let current = record
  for (const staged of stagedChanges(run)) {
    const { maxLength: _, ...change } = staged.change
    if (staged.owner === owner) current = applyChange(tables, owner, current, change)
  }
  return current
}

/** A quota of the change is that of the resource. */
function writeChange(tables: ThreadTables, owner: string, change: WorkingMemoryChange, resourceId?: string): WorkingMemoryRecord {
  const before = tables.workingMemory.newest(owner)
  if (before && change.id !== undefined && tables.workingMemory.hasChange(owner, change.id)) return before
  const after = applyChange(tables, owner, before, change)
  if (after === before) return after
  if (change.quota && resourceId !== undefined) tables.checkQuota(resourceId, change.quota, { bytes: addedBytes(tables, owner, after) })
  tables.workingMemory.add(owner, after, KEPT_VERSIONS)
  return after
}

/** A new version takes the place of the oldest that is kept. */
function addedBytes(tables: ThreadTables, owner: string, { version, value }: WorkingMemoryRecord): number {
  const oldest = version > KEPT_VERSIONS ? tables.workingMemory.at(owner, version - KEPT_VERSIONS) : undefined
  return Math.max(0, byteLength(value) - byteLength(oldest?.value ?? null))
}

/** The record after a change; the same record when the change has no effect. Writes nothing, and throws if the change is not allowed. */
function applyChange(
  tables: ThreadTables, owner: string, before: WorkingMemoryRecord | undefined, change: WorkingMemoryChange,
): WorkingMemoryRecord {
  const version = before?.version ?? 0
  if (change.expectedVersion !== undefined && change.expectedVersion !== version) {
    const problem = `Working memory has version ${version}, not ${change.expectedVersion}: it was changed in the meantime.`
    throw new HeedError('working_memory_conflict', `${problem} Read it again and repeat the change.`, {
      details: { version, expectedVersion: change.expectedVersion },
    })
  }
  const value = JSON.stringify(changedValue(tables, owner, before, change))
  const taintedBy = changedTaint(tables, owner, before, change)
  if (value === before?.value && taintedBy === before.taintedBy) return before
  const { length } = typeof JSON.parse(value) === 'string' ? (JSON.parse(value) as string) : value
  if (change.maxLength !== undefined && length > change.maxLength) {
    const problem = `Working memory would have ${length} characters; ${change.maxLength} are allowed. Nothing was changed.`
    throw new HeedError('working_memory_too_large', `${problem} Shorten it, or delete what is no longer needed.`, {
      details: { length, maxLength: change.maxLength },
    })
  }
  change.check?.(JSON.parse(value) as WorkingMemoryValue, before && (JSON.parse(before.value) as WorkingMemoryValue))
  return { version: version + 1, value, at: tables.now(), changeId: change.id ?? null, taintedBy }
}

/** A merge keeps parts of the value, and so their taint; a value that is set has the taint of who sets it. As JSON; null for none. */
function changedTaint(
  tables: ThreadTables, owner: string, before: WorkingMemoryRecord | undefined, change: WorkingMemoryChange,
): string | null {
  const kept = 'merge' in change ? before : 'restore' in change ? versionToRestore(tables, owner, before, change.restore) : undefined
  const all = joinTaint(kept ? taintOf(kept) : [], change.taintedBy ?? [])
  return all.length === 0 ? null : JSON.stringify(all)
}

function taintOf({ taintedBy }: Pick<WorkingMemoryRecord, 'taintedBy'>): string[] {
  return taintedBy === null ? [] : (JSON.parse(taintedBy) as string[])
}

function versionToRestore(
  tables: ThreadTables, owner: string, before: WorkingMemoryRecord | undefined, restore: number | 'previous',
): WorkingMemoryRecord | undefined {
  return tables.workingMemory.at(owner, restore === 'previous' ? (before?.version ?? 0) - 1 : restore)
}

function changedValue(
  tables: ThreadTables, owner: string, before: WorkingMemoryRecord | undefined, change: WorkingMemoryChange,
): WorkingMemoryValue {
  if ('set' in change) return change.set
  if ('restore' in change) {
    const version = change.restore === 'previous' ? (before?.version ?? 0) - 1 : change.restore
    // Before the first version it was empty.
    if (version === 0 && before) return typeof JSON.parse(before.value) === 'string' ? '' : {}
    const found = versionToRestore(tables, owner, before, version)
    if (found) return JSON.parse(found.value) as WorkingMemoryValue
    const problem = `Working memory has no version ${version} to restore.`
    throw new HeedError('working_memory_version_gone', `${problem} The last ${KEPT_VERSIONS} are kept.`, { details: { version } })
  }
  const base = before ? (JSON.parse(before.value) as WorkingMemoryValue) : {}
  let value: JSONObject = applyMergePatch(isObject(base) ? base : {}, change.merge)
  for (const path of change.remove ?? []) value = withoutPath(value, path)
  return value
}

function ownerOf(tables: ThreadTables, of: WorkingMemoryOf): string {
  return of.scope === 'resource' ? resourceOwner(of.resourceId) : threadOwner(scopedThread(tables, of))
}

/** The owner under which the working memory of a thread is stored. Keys of threads are never reused. */
export function threadOwner({ key }: Pick<ThreadRecord, 'key'>): string {
  return `t:${key}`
}

function resourceOwner(resourceId: string): string {
  return `r:${resourceId}`
}

function stagedChanges(run: RunRecord): StagedChange[] {
  return run.staged === null ? [] : (JSON.parse(run.staged) as StagedChange[])
}

function workingMemoryRow({ version, value, at, taintedBy }: WorkingMemoryRecord): WorkingMemoryRow {
  const row = { version, value: JSON.parse(value) as WorkingMemoryValue, at }
  return taintedBy === null ? row : { ...row, taintedBy: JSON.parse(taintedBy) as string[] }
}
