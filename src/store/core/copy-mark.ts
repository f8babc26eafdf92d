import type { ThreadRecord } from './records.ts'

/**
 * What the ids of a copy's messages end with. An id alone then means one message, in its own thread: clients change and delete messages by their ids, and
 * don't say where they read them.
 */
export function copyMark({ key }: Pick<ThreadRecord, 'key'>): string {
  return `~${key.toString(36)}`
}
