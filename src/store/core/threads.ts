import type { JSONValue } from '../../base/json.ts'
import type { InitialWorkingMemory, NewThread, Scope, ThreadRow } from '../contract/threads.ts'
import { describedThread, threadRow, untracked } from './decode.ts'
import { findThread, scopedThread } from './guard.ts'
import type { ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { checkWorkingMemory, setWorkingMemory } from './working-memory.ts'

export interface ThreadPatch {
  title?: string
  metadata?: Record<string, JSONValue | undefined>
  onlyIfUntitled?: boolean
  workingMemory?: InitialWorkingMemory
}

export function createThread(tables: ThreadTables, wanted: NewThread): { thread: ThreadRow; created: boolean } {
  const there = findThread(tables, { threadId: wanted.id, resourceId: wanted.resourceId })
  if (there) return { thread: describedThread(tables, there), created: false }
  checkWorkingMemory(tables, { resourceId: wanted.resourceId }, wanted.workingMemory)
  const thread = tables.addThread({
    id: wanted.id,
    resourceId: wanted.resourceId,
    title: wanted.title ?? '',
    metadata: JSON.stringify(untracked(wanted.metadata ?? {})),
    parentId: wanted.parentId ?? null,
    createdAt: wanted.now,
  })
  setWorkingMemory(tables, thread, wanted.workingMemory)
  return { thread: threadRow(thread), created: true }
}

export function patchThread(tables: ThreadTables, scope: Scope, patch: ThreadPatch): ThreadRow {
  const thread = scopedThread(tables, scope)
  checkWorkingMemory(tables, thread, patch.workingMemory)
  const metadata = mergedMetadata(thread.metadata, patch.metadata ?? {})
  const titled = patch.title !== undefined && !(patch.onlyIfUntitled && thread.title !== '')
  if (titled) thread.title = patch.title ?? ''
  if (patch.title !== undefined && thread.title !== '') tables.removeTitle(thread)
  thread.metadata = metadata
  // A title that was made for the thread is no news of it.
  if (!patch.onlyIfUntitled || patch.metadata || patch.workingMemory) thread.updatedAt = tables.now()
  setWorkingMemory(tables, thread, patch.workingMemory)
  tables.putThread(thread)
  return describedThread(tables, thread)
}

function mergedMetadata(before: string, patch: Record<string, JSONValue | undefined>): string {
  const metadata = new Map(Object.entries(JSON.parse(before) as Record<string, JSONValue>))
  for (const [key, value] of Object.entries(untracked(patch))) {
    if (value === null) metadata.delete(key)
    else if (value !== undefined) metadata.set(key, value)
  }
  return JSON.stringify(Object.fromEntries(metadata))
}

/** With the threads below it. Answers the ids of those that went, its own last. */
export function deleteThread(tables: ThreadTables, scope: Scope): string[] {
  const thread = findThread(tables, scope)
  if (!thread) return []
  const going = [...threadsBelow(tables, thread), thread]
  for (const one of going) tables.removeThread(one)
  return going.map(({ id }) => id)
}

/** Those below a thread and below those, the deepest first. One of another resource is not this thread's. */
export function threadsBelow(tables: ThreadTables, thread: ThreadRecord): ThreadRecord[] {
  return tables.children(thread).filter(({ resourceId }) => resourceId === thread.resourceId).flatMap((child) => [...threadsBelow(tables, child), child])
}
