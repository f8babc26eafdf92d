import { createHash } from 'node:crypto'
import { HeedError } from '../../base/errors.ts'

/*
 * Ids of watches and schedules are unique in the store, and callers choose them. A resource that chooses the id of another resource's gets
 * it completed with its own suffix, so that no resource can keep an id from another one. The id as it was chosen finds it too, within its
 * resource.
 */

const suffixOf = (resourceId: string) => `~${createHash('sha256').update(resourceId).digest('hex').slice(0, 16)}`

/** The id that a resource has instead, where another one has this id. */
export function completedId(id: string, resourceId: string): string {
  const suffix = suffixOf(resourceId)
  return id.endsWith(suffix) ? id : id + suffix
}

/** Throws for an id that may become the completed id of another resource. */
export function checkNotCompleted(id: string, resourceId: string): void {
  if (!/~[0-9a-f]{16}$/.test(id) || id.endsWith(suffixOf(resourceId))) return
  throw new HeedError('invalid_argument', `The id '${id}' ends like the ids that are made for other resources. Choose another id.`, {
    details: { field: 'id' },
  })
}
