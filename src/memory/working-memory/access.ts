import { checkNames, checkName, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { isObject, type JSONObject, type JSONValue } from '../../base/json.ts'
import { compileSchema, describeIssues } from '../../schema/compile.ts'
import type {
  InitialWorkingMemory,
  ThreadStore,
  WorkingMemoryChange,
  WorkingMemoryOf,
  WorkingMemoryRow,
} from '../../store/contract/threads.ts'
import { callerQuota } from '../../store/contract/usage.ts'
import { applyMergePatch } from '../../store/contract/working-memory.ts'
import { copyJSON } from '../arguments.ts'
import { checkOfWhole, parsePath, patchInput } from './schema.ts'
import { workingMemoryOwner, type WorkingMemorySetting } from './setting.ts'

/** Selects a working memory. That of a resource is also found by one of its threads. */
export interface WorkingMemoryTarget {
  threadId?: string
  resourceId?: string
}

/** What `updateWorkingMemory()` writes. */
export interface WorkingMemoryUpdate extends WorkingMemoryTarget {
  /** The text; with a schema, the fields that change, as an object or as JSON. */
  workingMemory: string | JSONObject
  /** With a schema: replaces the whole object instead of merging the fields. */
  replace?: boolean
  /** Fields to remove, as paths such as `preferences.tone`. */
  delete?: string[]
  /** Rejects the update when the present version is another; 0: when it is set already. */
  expectedVersion?: number
}

/** A version of working memory. */
export interface WorkingMemoryVersion<T = string | JSONObject> {
  version: number
  workingMemory: T
  updatedAt: Date
}

type Metadata = Record<string, JSONValue | undefined>

export async function readWorkingMemory(
  store: ThreadStore,
  setting: WorkingMemorySetting,
  target: WorkingMemoryTarget,
): Promise<WorkingMemoryVersion | null> {
  checkNames('getWorkingMemory()', target, ['threadId', 'resourceId'])
  const row = await store.getWorkingMemory(await ownerOf(store, setting, target))
  return row && versionOf(row)
}

export async function updateWorkingMemory(
  store: ThreadStore,
  setting: WorkingMemorySetting,
  update: WorkingMemoryUpdate,
): Promise<WorkingMemoryVersion> {
  checkNames('updateWorkingMemory()', update, ['threadId', 'resourceId', 'workingMemory', 'replace', 'delete', 'expectedVersion'])
  rejectReadOnly(setting)
  const { expectedVersion } = update
  if (expectedVersion !== undefined) checkWhole('expectedVersion', expectedVersion)
  const change = await parseChange(setting, update)
  const owner = await ownerOf(store, setting, update)
  const condition = expectedVersion === undefined ? {} : { expectedVersion }
  return versionOf(await store.mergeWorkingMemory(owner, { ...change, ...condition, ...callerQuota() }))
}

export async function listVersions(
  store: ThreadStore,
  setting: WorkingMemorySetting,
  target: WorkingMemoryTarget & { limit?: number; before?: number },
): Promise<WorkingMemoryVersion[]> {
  checkNames('listWorkingMemoryVersions()', target, ['threadId', 'resourceId', 'limit', 'before'])
  const { limit = 100, before } = target
  checkWhole('limit', limit, 1)
  if (before !== undefined) checkWhole('before', before)
  const rows = await store.listWorkingMemory(await ownerOf(store, setting, target), { limit, ...(before === undefined ? {} : { before }) })
  return rows.map(versionOf)
}

/** Restores a version, by default the one before the present. That makes a new version: it can be undone too. */
export async function undoWorkingMemory(
  store: ThreadStore, setting: WorkingMemorySetting, target: WorkingMemoryTarget & { version?: number; expectedVersion?: number },
): Promise<WorkingMemoryVersion> {
  checkNames('undoWorkingMemory()', target, ['threadId', 'resourceId', 'version', 'expectedVersion'])
  rejectReadOnly(setting)
  const { version, expectedVersion } = target
  for (const [field, value] of Object.entries({ version, expectedVersion })) if (value !== undefined) checkWhole(field, value)
  const change: WorkingMemoryChange = { restore: version ?? 'previous', ...(expectedVersion === undefined ? {} : { expectedVersion }) }
  return versionOf(await store.mergeWorkingMemory(await ownerOf(store, setting, target), { ...change, ...callerQuota() }))
}

/**
 * Separates the key `workingMemory` of a thread's metadata: it sets working memory and is not stored as metadata, so that writing
 * `...thread.metadata` back never restores an old value. When working memory is off, it is a key like others.
 */
export async function splitMetadata<M extends Metadata>(
  setting: WorkingMemorySetting | undefined, given: M | undefined,
): Promise<{ metadata?: Omit<M, 'workingMemory'>; workingMemory?: InitialWorkingMemory }> {
  if (!given) return {}
  const { workingMemory, ...metadata } = given
  if (!setting || workingMemory === undefined) return { metadata: given }
  rejectReadOnly(setting)
  const { scope } = setting
  if (workingMemory === null) return { metadata, workingMemory: { scope, change: { set: 'template' in setting.form ? '' : {} } } }
  if (typeof workingMemory !== 'string' && (typeof workingMemory !== 'object' || Array.isArray(workingMemory))) {
    throw new HeedError('invalid_argument', 'metadata.workingMemory must be a string or an object.', {
      details: { field: 'metadata.workingMemory' },
    })
  }
  return { metadata, workingMemory: { scope, change: await parseChange(setting, { workingMemory }) } }
}

/** The change that an update makes, validated against the schema. */
async function parseChange(
  setting: WorkingMemorySetting, update: Pick<WorkingMemoryUpdate, 'workingMemory' | 'replace' | 'delete'>,
): Promise<InitialWorkingMemory['change'] & { maxLength: number }> {
  const { maxLength, form } = setting
  const { workingMemory, replace = false, delete: removed = [] } = update
  if (typeof replace !== 'boolean') throw refused('replace', 'true or false')
  if ('template' in form) {
    if (typeof workingMemory !== 'string') throw invalidWorkingMemory('must be a string: this working memory has a template')
    if (update.replace !== undefined || update.delete !== undefined) {
      throw refused(
        update.delete === undefined ? 'replace' : 'delete',
        'left out: this working memory has a template and is always replaced as a whole',
      )
    }
    return { set: workingMemory, maxLength }
  }
  const given = typeof workingMemory === 'string' ? parseObject(workingMemory) : workingMemory
  if (!isObject(given)) throw invalidWorkingMemory('must be an object, or JSON of one: this working memory has a schema')
  const memory = copyJSON('workingMemory', given)
  const checked = await compileSchema(await patchInput(form.schema), 'workingMemory').validate({ memory, delete: removed })
  if (!checked.ok) throw invalidWorkingMemory(`does not match its schema: ${describeIssues(checked.issues)}`)
  const check = checkOfWhole(form.schema)
  const limits = { maxLength, ...(check && { check }) }
  return replace ? { set: applyMergePatch({}, memory), ...limits } : { merge: memory, remove: removed.map(parsePath), ...limits }
}

function parseObject(text: string): JSONObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalidWorkingMemory('must be an object, or JSON of one: this working memory has a schema')
  }
  return value as JSONObject
}

async function ownerOf(
  store: ThreadStore,
  setting: WorkingMemorySetting,
  { threadId, resourceId }: WorkingMemoryTarget,
): Promise<WorkingMemoryOf> {
  for (const [field, id] of Object.entries({ threadId, resourceId })) if (id !== undefined) checkName(field, id)
  const thread =
    threadId === undefined ? undefined : await store.getThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }) })
  return workingMemoryOwner(setting, { threadId, resourceId: resourceId ?? thread?.resourceId })
}

function versionOf({ version, value, at }: WorkingMemoryRow): WorkingMemoryVersion {
  return { version, workingMemory: value, updatedAt: new Date(at) }
}

function rejectReadOnly({ readOnly }: WorkingMemorySetting): void {
  if (readOnly) {
    throw new HeedError('read_only', 'This memory is readOnly: working memory cannot be changed.', { details: { option: 'readOnly' } })
  }
}

function invalidWorkingMemory(why: string): HeedError {
  return new HeedError('invalid_argument', `workingMemory ${why}.`, { details: { field: 'workingMemory' } })
}
