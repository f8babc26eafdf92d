import { checkNames, checkName, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { compileSchema, describeIssues } from '../../schema/compile.ts'
import type { InitialWorkingMemory, ThreadStore, WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryRow } from '../../store/contract/threads.ts'
import { isObject, merged } from '../../store/contract/working-memory.ts'
import { jsonOf } from '../arguments.ts'
import { patchInput, pathOf } from './patch-schema.ts'
import { ownerIn, type WorkingMemorySetting } from './setting.ts'
import { wholeCheck } from './whole-check.ts'

/** Whose working memory is meant. That of a resource is also found by one of its threads. */
export interface WorkingMemoryTarget {
  threadId?: string
  resourceId?: string
}

export interface WorkingMemoryUpdate extends WorkingMemoryTarget {
  /** The text; with a schema, the fields that change, as an object or as JSON. */
  workingMemory: string | JSONObject
  /** With a schema: put this in the place of all that is there. */
  replace?: boolean
  /** Fields to remove, as paths such as `preferences.tone`. */
  delete?: string[]
  /** Refuse when it has another version by now; 0: when there is none yet. */
  expectedVersion?: number
}

export interface WorkingMemoryVersion<T = string | JSONObject> {
  version: number
  workingMemory: T
  updatedAt: Date
}

export async function readWorkingMemory(store: ThreadStore, setting: WorkingMemorySetting, target: WorkingMemoryTarget): Promise<WorkingMemoryVersion | null> {
  checkNames('getWorkingMemory()', target, ['threadId', 'resourceId'])
  const row = await store.getWorkingMemory(await ownerOf(store, setting, target))
  return row && versionOf(row)
}

export async function updateWorkingMemory(store: ThreadStore, setting: WorkingMemorySetting, update: WorkingMemoryUpdate): Promise<WorkingMemoryVersion> {
  checkNames('updateWorkingMemory()', update, ['threadId', 'resourceId', 'workingMemory', 'replace', 'delete', 'expectedVersion'])
  refuseReadOnly(setting)
  const { expectedVersion } = update
  if (expectedVersion !== undefined) checkWhole('expectedVersion', expectedVersion)
  const change = await changeOf(setting, update)
  const owner = await ownerOf(store, setting, update)
  return versionOf(await store.mergeWorkingMemory(owner, { ...change, ...(expectedVersion === undefined ? {} : { expectedVersion }) }))
}

export async function listVersions(store: ThreadStore, setting: WorkingMemorySetting, target: WorkingMemoryTarget & { limit?: number; before?: number }): Promise<WorkingMemoryVersion[]> {
  checkNames('listWorkingMemoryVersions()', target, ['threadId', 'resourceId', 'limit', 'before'])
  const { limit = 100, before } = target
  checkWhole('limit', limit, 1)
  if (before !== undefined) checkWhole('before', before)
  const rows = await store.listWorkingMemory(await ownerOf(store, setting, target), { limit, ...(before === undefined ? {} : { before }) })
  return rows.map(versionOf)
}

/** Goes back to a version, or to the one before the present. That is a new version: it can be undone too. */
export async function undoWorkingMemory(
  store: ThreadStore, setting: WorkingMemorySetting, target: WorkingMemoryTarget & { version?: number; expectedVersion?: number },
): Promise<WorkingMemoryVersion> {
  checkNames('undoWorkingMemory()', target, ['threadId', 'resourceId', 'version', 'expectedVersion'])
  refuseReadOnly(setting)
  const { version, expectedVersion } = target
  for (const [field, value] of Object.entries({ version, expectedVersion })) if (value !== undefined) checkWhole(field, value)
  const change: WorkingMemoryChange = { restore: version ?? 'previous', ...(expectedVersion === undefined ? {} : { expectedVersion }) }
  return versionOf(await store.mergeWorkingMemory(await ownerOf(store, setting, target), change))
}

/** What an update does to what is there. Refuses what the schema doesn't allow. */
export async function changeOf(setting: WorkingMemorySetting, update: Pick<WorkingMemoryUpdate, 'workingMemory' | 'replace' | 'delete'>): Promise<InitialWorkingMemory['change'] & { maxLength: number }> {
  const { maxLength, form } = setting
  const { workingMemory, replace = false, delete: removed = [] } = update
  if (typeof replace !== 'boolean') throw refused('replace', 'true or false')
  if ('template' in form) {
    if (typeof workingMemory !== 'string') throw invalid('must be a text: this working memory has a template')
    if (update.replace !== undefined || update.delete !== undefined) {
      throw refused(update.delete === undefined ? 'replace' : 'delete', 'left out: this working memory has a template and is always written whole')
    }
    return { set: workingMemory, maxLength }
  }
  const given = typeof workingMemory === 'string' ? parsed(workingMemory) : workingMemory
  if (!isObject(given)) throw invalid('must be an object, or JSON of one: this working memory has a schema')
  const memory = jsonOf('workingMemory', given)
  const checked = await compileSchema(await patchInput(form.schema), 'workingMemory').validate({ memory, delete: removed })
  if (!checked.ok) throw invalid(`does not match its schema: ${describeIssues(checked.issues)}`)
  const check = wholeCheck(form.schema)
  const limits = { maxLength, ...(check && { check }) }
  return replace ? { set: merged({}, memory), ...limits } : { merge: memory, remove: removed.map(pathOf), ...limits }
}

function parsed(text: string): JSONObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('must be an object, or JSON of one: this working memory has a schema')
  }
  return value as JSONObject
}

async function ownerOf(store: ThreadStore, setting: WorkingMemorySetting, { threadId, resourceId }: WorkingMemoryTarget): Promise<WorkingMemoryOf> {
  for (const [field, id] of Object.entries({ threadId, resourceId })) if (id !== undefined) checkName(field, id)
  const thread = threadId === undefined ? undefined : await store.getThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }) })
  return ownerIn(setting, { threadId, resourceId: resourceId ?? thread?.resourceId })
}

function versionOf({ version, value, at }: WorkingMemoryRow): WorkingMemoryVersion {
  return { version, workingMemory: value, updatedAt: new Date(at) }
}

export function refuseReadOnly({ readOnly }: WorkingMemorySetting): void {
  if (readOnly) throw new HeedError('read_only', 'This memory is readOnly: working memory can be read and not changed.', { details: { option: 'readOnly' } })
}

function invalid(why: string): HeedError {
  return new HeedError('invalid_argument', `workingMemory ${why}.`, { details: { field: 'workingMemory' } })
}
