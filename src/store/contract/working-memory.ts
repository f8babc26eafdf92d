import { isObject, type JSONObject, type JSONValue } from '../../base/json.ts'
import type { Fence } from './thread-row.ts'
import type { Quota } from './usage.ts'

/** Working memory of a resource or of a thread, in versions. Part of `ThreadStore`: a run's changes and its end are one transaction. */
export interface WorkingMemoryStore {
  /** The current version; with a run, as that run reads it: with the changes that it has staged. */
  getWorkingMemory(of: WorkingMemoryOf, run?: { threadId: string; runId: string }): Promise<WorkingMemoryRow | null>
  /**
   * Changes it in one transaction and returns the result. A change without effect, or whose `id` was stored before, makes no new version.
   * Rejects with `working_memory_conflict` when `expectedVersion` is another, with `working_memory_too_large` above `maxLength`, with
   * `working_memory_version_gone` when the version to restore is not stored. With `by`, the run must have the lease; a `staged` change
   * takes effect when the run ends or new input seals it, and never if the run is rejected before.
   */
  mergeWorkingMemory(of: WorkingMemoryOf, change: WorkingMemoryChange, by?: WorkingMemoryWriter): Promise<WorkingMemoryRow>
  /** Its versions, newest first. The last hundred are kept. */
  listWorkingMemory(of: WorkingMemoryOf, query: { limit: number; before?: number }): Promise<WorkingMemoryRow[]>
}

/** The owner of the working memory. A thread of another resource is rejected. */
export type WorkingMemoryOf = { scope: 'resource'; resourceId: string } | { scope: 'thread'; threadId: string; resourceId?: string }

/** Working memory is Markdown, or an object with a schema. */
export type WorkingMemoryValue = string | JSONObject

/** A change of working memory, with what it needs to be accepted. */
export type WorkingMemoryChange = {
  /** A change with the same id is applied once. */
  id?: string
  expectedVersion?: number
  /** The maximum length of the text, or of the JSON. */
  maxLength?: number
  /** Of the caller; it does not apply to the change of a run. */
  quota?: Quota
  /** Where values in the change came from that outside senders chose. A merge keeps those of the present value too. */
  taintedBy?: readonly string[]
  /** Called in the transaction with the new value and the current one. Throws to reject the change. */
  check?: (value: WorkingMemoryValue, before: WorkingMemoryValue | undefined) => void
} & (
  | { set: WorkingMemoryValue }
  /** Merges objects, replaces other values; null removes a field. `remove` has paths of fields. A text is replaced by the merged object. */
  | { merge: JSONObject; remove?: ReadonlyArray<readonly string[]> }
  /** Stores the value of that version, or of the one before the current, as a new version. */
  | { restore: number | 'previous' }
)

/** A change that comes with the description of a thread. Above `maxLength`, the whole call is rejected. */
export interface InitialWorkingMemory {
  scope: WorkingMemoryOf['scope']
  change: Pick<WorkingMemoryChange, 'maxLength' | 'check'> & (
    | { set: WorkingMemoryValue }
    | { merge: JSONObject; remove?: ReadonlyArray<readonly string[]> }
  )
}

/** The run that writes working memory, with its fence. */
export interface WorkingMemoryWriter {
  fence: Fence
  runId: string
  staged: boolean
}

/** A version of working memory. */
export interface WorkingMemoryRow {
  /** Grows by one with each change. For a staged change: the version that it would have now. */
  version: number
  value: WorkingMemoryValue
  /** The time of the change, in milliseconds. */
  at: number
  /** Where values in it came from that outside senders chose. Absent if there are none. */
  taintedBy?: readonly string[]
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
