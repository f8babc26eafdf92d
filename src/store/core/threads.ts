import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { InitialWorkingMemory, NewThread, Scope, ThreadRow } from '../contract/threads.ts'
import type { TitleClaim, WantedTitle } from '../contract/titles.ts'
import { descendants, removeWithDescendants } from './child-threads.ts'
import { findThread, scopedThread } from './lease.ts'
import { threadRow, withoutLaneMetadata, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { checkWorkingMemory, setWorkingMemory } from './working-memory.ts'

export interface ThreadPatch {
  title?: string
  metadata?: Record<string, JSONValue | undefined>
  onlyIfUntitled?: boolean
  workingMemory?: InitialWorkingMemory
}

/** A thread as callers read it, with its lanes in its metadata. */
export function threadWithLanes(tables: Pick<ThreadTables, 'lanes'>, thread: ThreadRecord): ThreadRow {
  return threadRow(thread, tables.lanes(thread))
}

export function createThread(tables: ThreadTables, wanted: NewThread): { thread: ThreadRow; created: boolean } {
  const existing = findThread(tables, { threadId: wanted.id, resourceId: wanted.resourceId })
  if (existing) return { thread: threadWithLanes(tables, existing), created: false }
  checkWorkingMemory(tables, { resourceId: wanted.resourceId }, wanted.workingMemory)
  const thread = tables.addThread({
    id: wanted.id,
    resourceId: wanted.resourceId,
    title: wanted.title ?? '',
    metadata: JSON.stringify(withoutLaneMetadata(wanted.metadata ?? {})),
    parentId: wanted.parentId ?? null,
    createdAt: wanted.now,
  })
  setWorkingMemory(tables, thread, wanted.workingMemory)
  return { thread: threadRow(thread), created: true }
}

export function patchThread(tables: ThreadTables, scope: Scope, patch: ThreadPatch): ThreadRow {
  const thread = scopedThread(tables, scope)
  checkWorkingMemory(tables, thread, patch.workingMemory)
  const metadata = mergeMetadata(thread.metadata, patch.metadata ?? {})
  const setsTitle = patch.title !== undefined && !(patch.onlyIfUntitled && thread.title !== '')
  if (setsTitle) thread.title = patch.title ?? ''
  if (patch.title !== undefined && thread.title !== '') tables.removeTitle(thread)
  thread.metadata = metadata
  // A generated title does not count as activity.
  if (!patch.onlyIfUntitled || patch.metadata || patch.workingMemory) thread.updatedAt = tables.now()
  setWorkingMemory(tables, thread, patch.workingMemory)
  tables.putThread(thread)
  return threadWithLanes(tables, thread)
}

function mergeMetadata(before: string, patch: Record<string, JSONValue | undefined>): string {
  const metadata = new Map(Object.entries(JSON.parse(before) as Record<string, JSONValue>))
  for (const [key, value] of Object.entries(withoutLaneMetadata(patch))) {
    if (value === null) metadata.delete(key)
    else if (value !== undefined) metadata.set(key, value)
  }
  return JSON.stringify(Object.fromEntries(metadata))
}

/** Deletes a thread and all threads below it. Returns their ids, its own last. */
export function deleteThread(tables: ThreadTables, scope: Scope): string[] {
  const thread = findThread(tables, scope)
  return thread ? removeWithDescendants(tables, thread) : []
}

export function transferThread(tables: ThreadTables, scope: Scope, resourceId: string): ThreadRow {
  const thread = scopedThread(tables, scope)
  if (thread.status !== 'idle') {
    throw new HeedError('thread_active', `Thread ${thread.id} is ${thread.status}. Transfer it when it is idle.`, {
      details: { threadId: thread.id },
      retryable: true,
    })
  }
  if (thread.resourceId === resourceId) return threadWithLanes(tables, thread)
  for (const child of descendants(tables, thread)) tables.transferThread(child, resourceId)
  return threadWithLanes(tables, tables.transferThread(thread, resourceId))
}

/**
 * Marks a thread that needs a title. Returns whether this process generates it: false also when the thread has a title or a mark, or is a
 * child thread.
 */
export function markUntitled(tables: ThreadTables, thread: ThreadRecord, agentId: string, owner: string, until: number): boolean {
  if (thread.title !== '' || thread.parentId !== null || tables.title(thread)) return false
  const isClaimed = until > tables.now()
  tables.putTitle(thread, { agentId, owner: isClaimed ? owner : null, dueAt: until, attempts: isClaimed ? 1 : 0 })
  return isClaimed
}

export function claimTitles(tables: ThreadTables, { owner, now, until, limit, agentIds }: TitleClaim): WantedTitle[] {
  const ofAgents = agentIds.flatMap((agentId) => tables.dueTitles(agentId, now, limit))
  const due = ofAgents.toSorted((a, b) => a.dueAt - b.dueAt).slice(0, limit)
  return due.flatMap(({ threadId, agentId, attempts }) => {
    const thread = tables.thread(threadId)
    if (!thread) return []
    tables.putTitle(thread, { agentId, owner, dueAt: until, attempts: attempts + 1 })
    return { threadId, agentId, attempts: attempts + 1 }
  })
}

export function returnTitle(tables: ThreadTables, threadId: string, dueAt: number | null): void {
  const thread = tables.thread(threadId)
  const mark = thread && tables.title(thread)
  if (!mark) return
  if (dueAt === null) tables.removeTitle(thread)
  else tables.putTitle(thread, { ...mark, owner: null, dueAt })
}
