import { isObject, type JSONObject, type JSONValue } from '../../base/json.ts'
import type { Fence } from './threads.ts'

/**
 * What an agent keeps in mind of a resource or of a thread, in versions. Part of `ThreadStore`: a run's changes and its end are one
 * transaction.
 */
export interface WorkingMemoryStore {
  /** What is there now; with a run, as that run sees it: with what it changed and what does not count yet. */
  getWorkingMemory(of: WorkingMemoryOf, run?: { threadId: string; runId: string }): Promise<WorkingMemoryRow | null>
  /**
   * Changes it in one transaction and answers what came of it. A change that changes nothing, or whose `id` was there before, makes no
   * version. Refuses with `working_memory_conflict` when `expectedVersion` is another, with `working_memory_too_large` above
   * `maxLength`, with `working_memory_version_gone` when there is nothing to restore. With `by`, the run must have its lease; a `staged`
   * change counts when the run ends or new input seals it, and never if the run is rejected before.
   */
  mergeWorkingMemory(of: WorkingMemoryOf, change: WorkingMemoryChange, by?: WorkingMemoryWriter): Promise<WorkingMemoryRow>
  /** Its versions, newest first. The last hundred are kept. */
  listWorkingMemory(of: WorkingMemoryOf, query: { limit: number; before?: number }): Promise<WorkingMemoryRow[]>
}

/** Whose it is. A thread of another resource is refused. */
export type WorkingMemoryOf = { scope: 'resource'; resourceId: string } | { scope: 'thread'; threadId: string; resourceId?: string }

export type WorkingMemoryValue = string | JSONObject

export type WorkingMemoryChange = {
  /** The same id again is the same change. */
  id?: string
  expectedVersion?: number
  /** Of the text, or of the JSON. */
  maxLength?: number
  /** Told in the transaction what would be there and what is. Throws to refuse the change. */
  check?: (value: WorkingMemoryValue, before: WorkingMemoryValue | undefined) => void
} & (
  | { set: WorkingMemoryValue }
  /** Objects are merged, everything else is replaced, null removes a field. `remove` has paths of fields. Over a text, it begins anew. */
  | { merge: JSONObject; remove?: ReadonlyArray<readonly string[]> }
  /** The value of that version, or the one before the present, as a new version. */
  | { restore: number | 'previous' }
)

/** A change that comes with a thread's description. Above `maxLength`, the description is refused with it. */
export interface InitialWorkingMemory {
  scope: WorkingMemoryOf['scope']
  change: Pick<WorkingMemoryChange, 'maxLength' | 'check'> & ({ set: WorkingMemoryValue } | { merge: JSONObject; remove?: ReadonlyArray<readonly string[]> })
}

export interface WorkingMemoryWriter {
  fence: Fence
  runId: string
  staged: boolean
}

export interface WorkingMemoryRow {
  /** Grows by one with each change. Of a staged change: the one it would be. */
  version: number
  value: WorkingMemoryValue
  /** When that was, in milliseconds. */
  at: number
}

/** Applies a merge patch: objects are merged, null removes a field, other values replace. */
export function applyMergePatch(base: JSONObject, patch: JSONObject): JSONObject {
  const fields = new Map<string, JSONValue>(definedEntries(base))
  for (const [key, value] of definedEntries(patch)) {
    if (value === null) fields.delete(key)
    else if (isObject(value)) {
      const before = fields.get(key)
      fields.set(key, applyMergePatch(isObject(before) ? before : {}, value))
    } else fields.set(key, value)
  }
  return Object.fromEntries(fields)
}

/** The value without the field at this path, if it has it. */
export function withoutPath(base: JSONObject, [key, ...rest]: readonly string[]): JSONObject {
  if (key === undefined || !Object.hasOwn(base, key)) return base
  if (rest.length === 0) return Object.fromEntries(definedEntries(base).filter(([name]) => name !== key))
  const inner = base[key]
  if (!isObject(inner)) return base
  return Object.fromEntries(definedEntries(base).map(([name, value]) => [name, name === key ? withoutPath(inner, rest) : value]))
}

/** The merge patch that changes one value into the other. */
export function mergePatchBetween(before: JSONObject, after: JSONObject): JSONObject {
  const patch = new Map<string, JSONValue>()
  for (const [key] of definedEntries(before)) if (!Object.hasOwn(after, key)) patch.set(key, null)
  for (const [key, value] of definedEntries(after)) {
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    if (isObject(old) && isObject(value)) {
      const inner = mergePatchBetween(old, value)
      if (Object.keys(inner).length > 0) patch.set(key, inner)
    } else if (JSON.stringify(old) !== JSON.stringify(value)) patch.set(key, value)
  }
  return Object.fromEntries(patch)
}

function definedEntries(value: JSONObject): Array<[string, JSONValue]> {
  return Object.entries(value).flatMap(([key, field]): Array<[string, JSONValue]> => (field === undefined ? [] : [[key, field]]))
}
