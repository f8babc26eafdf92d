import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { InitialWorkingMemory } from '../../store/contract/threads.ts'
import { changeOf, refuseReadOnly } from './access.ts'
import type { WorkingMemorySetting } from './setting.ts'

type Metadata = Record<string, JSONValue | undefined>

/**
 * The key `workingMemory` of a thread's metadata is written through to working memory and is not part of the metadata that is read
 * back: so `...thread.metadata` never brings back an old one. Without working memory it is a key like others.
 */
export async function splitMetadata<M extends Metadata>(
  setting: WorkingMemorySetting | undefined, given: M | undefined,
): Promise<{ metadata?: Omit<M, 'workingMemory'>; workingMemory?: InitialWorkingMemory }> {
  if (!given) return {}
  const { workingMemory, ...metadata } = given
  if (!setting || workingMemory === undefined) return { metadata: given }
  refuseReadOnly(setting)
  const { scope } = setting
  if (workingMemory === null) return { metadata, workingMemory: { scope, change: { set: 'template' in setting.form ? '' : {} } } }
  if (typeof workingMemory !== 'string' && (typeof workingMemory !== 'object' || Array.isArray(workingMemory))) {
    throw new HeedError('invalid_argument', 'metadata.workingMemory must be a text or an object.', { details: { field: 'metadata.workingMemory' } })
  }
  return { metadata, workingMemory: { scope, change: await changeOf(setting, { workingMemory }) } }
}
