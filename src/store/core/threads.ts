import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { DuePolicy, Pruned, PrunePolicy, ThreadClone } from '../contract/messages.ts'
import type { InitialWorkingMemory, NewThread, Quota, Scope, ThreadRow, TitleClaim, WantedTitle } from '../contract/threads.ts'
import { descendants, endThread, removeWithDescendants } from './child-threads.ts'
import { copyLanes, removeLaneSignals } from './lanes.ts'
import { checkNewThreadId, findThread, scopedThread } from './lease.ts'
import { mergeTail } from './messages.ts'
import { byteLength, startsMessage, threadRow, withoutLaneMetadata, type ThreadRecord } from './records.ts'
import type { ThreadTables, WantedMessages } from './tables.ts'
import { checkWorkingMemory, copyWorkingMemory, setWorkingMemory } from './working-memory.ts'

export interface ThreadPatch {
  title?: string
  metadata?: Record<string, JSONValue | undefined>
  onlyIfUntitled?: boolean
  workingMemory?: InitialWorkingMemory
  quota?: Quota
}

/** A thread as callers read it, with its lanes in its metadata. */
export function threadWithLanes(tables: Pick<ThreadTables, 'lanes'>, thread: ThreadRecord): ThreadRow {
  return threadRow(thread, tables.lanes(thread))
}

export function createThread(tables: ThreadTables, wanted: NewThread): { thread: ThreadRow; created: boolean } {
  tables.lock?.([wanted.id])
  const existing = findThread(tables, { threadId: wanted.id, resourceId: wanted.resourceId })
  if (existing) return { thread: threadWithLanes(tables, existing), created: false }
  checkNewThreadId(wanted.id, wanted.parentId)
  const memoryBytes = wanted.workingMemory ? checkWorkingMemory(tables, { resourceId: wanted.resourceId }, wanted.workingMemory) : 0
  const metadata = JSON.stringify(withoutLaneMetadata(wanted.metadata ?? {}))
  if (wanted.quota && wanted.parentId === undefined) {
    const bytes = byteLength(metadata) + byteLength(wanted.title ?? null) + memoryBytes
    tables.checkQuota(wanted.resourceId, wanted.quota, { threads: 1, bytes })
  }
  const thread = tables.addThread({
    id: wanted.id,
    resourceId: wanted.resourceId,
    title: wanted.title ?? '',
    metadata,
    parentId: wanted.parentId ?? null,
    createdAt: wanted.now,
  })
  if (wanted.workingMemory) setWorkingMemory(tables, thread, wanted.workingMemory)
  return { thread: threadRow(thread), created: true }
}

export function patchThread(tables: ThreadTables, scope: Scope, patch: ThreadPatch): ThreadRow {
  tables.lock?.([scope.threadId])
  const thread = scopedThread(tables, scope)
  const memoryBytes = patch.workingMemory ? checkWorkingMemory(tables, thread, patch.workingMemory) : 0
  const bytes = byteLength(patch.metadata ? JSON.stringify(patch.metadata) : null) + byteLength(patch.title ?? null) + memoryBytes
  if (patch.quota) tables.checkQuota(thread.resourceId, patch.quota, { bytes })
  describeThread(tables, thread, patch)
  // A generated title does not count as activity.
  if (!patch.onlyIfUntitled || patch.metadata || patch.workingMemory) thread.updatedAt = tables.now()
  if (patch.workingMemory) setWorkingMemory(tables, thread, patch.workingMemory)
  tables.putThread(thread)
  return threadWithLanes(tables, thread)
}

/** Sets the title and merges the metadata; the caller puts the record. */
export function describeThread(tables: ThreadTables, thread: ThreadRecord, { title, metadata, onlyIfUntitled }: ThreadPatch): void {
  if (metadata) thread.metadata = mergeMetadata(thread.metadata, metadata)
  if (title === undefined) return
  if (!onlyIfUntitled || thread.title === '') thread.title = title
  if (thread.title !== '') tables.titles.remove(thread)
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
  tables.lock?.([scope.threadId], { below: true })
  const thread = findThread(tables, scope)
  return thread ? removeWithDescendants(tables, thread) : []
}

export function transferThread(tables: ThreadTables, scope: Scope, resourceId: string, quota?: Quota): ThreadRow {
  tables.lock?.([scope.threadId], { below: true })
  const thread = scopedThread(tables, scope)
  if (thread.status !== 'idle') {
    throw new HeedError('thread_active', `Thread ${thread.id} is ${thread.status}. Transfer it when it is idle.`, {
      details: { threadId: thread.id },
      retryable: true,
    })
  }
  if (thread.resourceId === resourceId) return threadWithLanes(tables, thread)
  const below = descendants(tables, thread)
  // The total stays the same: only the limits of the new resource apply.
  if (quota?.resource) {
    const moved = [...below, thread].map((one) => tables.movable(one))
    const sum = (name: 'bytes' | 'schedules') => moved.reduce((all, one) => all + one[name], 0)
    tables.checkQuota(resourceId, { resource: quota.resource }, { threads: 1, bytes: sum('bytes'), schedules: sum('schedules') })
  }
  for (const child of below) tables.transferThread(child, resourceId)
  return threadWithLanes(tables, tables.transferThread(thread, resourceId))
}

/**
 * Marks a thread that needs a title. Returns whether this process generates it: false also when the thread has a title or a mark, or is a
 * child thread.
 */
export function markUntitled(tables: ThreadTables, thread: ThreadRecord, agentId: string, owner: string, until: number): boolean {
  if (thread.title !== '' || thread.parentId !== null || tables.titles.get(thread)) return false
  const isClaimed = until > tables.now()
  tables.titles.put(thread, { agentId, owner: isClaimed ? owner : null, dueAt: until, attempts: isClaimed ? 1 : 0 })
  return isClaimed
}

export function claimTitles(tables: ThreadTables, { owner, now, until, limit, agentIds }: TitleClaim): WantedTitle[] {
  tables.lockAll?.('titles')
  const ofAgents = agentIds.flatMap((agentId) => tables.titles.due(agentId, now, limit))
  const due = ofAgents.toSorted((a, b) => a.dueAt - b.dueAt).slice(0, limit)
  return due.flatMap(({ threadId, agentId, attempts }) => {
    const thread = tables.thread(threadId)
    if (!thread) return []
    tables.titles.put(thread, { agentId, owner, dueAt: until, attempts: attempts + 1 })
    return { threadId, agentId, attempts: attempts + 1 }
  })
}

export function returnTitle(tables: ThreadTables, threadId: string, dueAt: number | null): void {
  tables.lock?.([threadId])
  const thread = tables.thread(threadId)
  const mark = thread && tables.titles.get(thread)
  if (!mark) return
  if (dueAt === null) tables.titles.remove(thread)
  else tables.titles.put(thread, { ...mark, owner: null, dueAt })
}

/**
 * The suffix of row and message ids in a copy of a thread. It makes them unique across threads: clients change and delete messages by id,
 * without naming the thread that they read them from.
 */
export function copySuffix({ key }: Pick<ThreadRecord, 'key'>): string {
  return `~${key.toString(36)}`
}

export function cloneThread(tables: ThreadTables, scope: Scope, clone: ThreadClone): ThreadRow {
  tables.lock?.([scope.threadId, clone.id])
  const source = scopedThread(tables, scope)
  checkNewThreadId(clone.id, undefined)
  if (tables.thread(clone.id)) {
    throw new HeedError('thread_exists', `Thread ${clone.id} exists already. Choose another id for the copy, or pass none.`, {
      details: { threadId: clone.id },
    })
  }
  const resourceId = clone.resourceId ?? source.resourceId
  const origin = { sourceThreadId: source.id, clonedAt: new Date(clone.now).toISOString() }
  const metadata = JSON.stringify({ ...withoutLaneMetadata(clone.metadata), clone: origin })
  const title = clone.title ?? (source.title === '' ? '' : `Clone of ${source.title}`)
  if (clone.quota) tables.checkQuota(resourceId, clone.quota, { threads: 1, bytes: tables.bytes(source) + byteLength(metadata) })
  const copy = tables.addThread({ id: clone.id, resourceId, title, metadata, parentId: null, createdAt: clone.now })
  const wanted = wantedMessages(clone)
  if (wanted) {
    tables.copySomeRows(source, copy, wanted)
    const last = tables.lastRow(copy)
    if (last) Object.assign(copy, { nextSeq: last.seq + 1, ordinal: last.ordinal, turn: last.turn })
  } else {
    // Recall blocks quote messages of the source's resource, which another resource must not see.
    tables.copyAllRows(source, copy, resourceId === source.resourceId)
    const { nextSeq, ordinal, turn, tail, tailOrdinal, tailTurn } = source
    Object.assign(copy, { nextSeq, ordinal, turn, tail, tailOrdinal, tailTurn })
    mergeTail(tables, copy)
  }
  const [last] = tables.edgeStarts(copy, 'newest', 1)
  if (last) copy.metadata = JSON.stringify({ ...withoutLaneMetadata(clone.metadata), clone: { ...origin, lastMessageId: last.messageId } })
  copyLanes(tables, source, copy, copySuffix(copy))
  // Working memory may describe the source's resource, so another resource must not see it.
  if (resourceId === source.resourceId) copyWorkingMemory(tables, source, copy)
  tables.putThread(copy)
  return threadWithLanes(tables, copy)
}

function wantedMessages({ limit, from, to, messageIds }: ThreadClone): WantedMessages | undefined {
  if (limit === undefined && !from && !to && !messageIds) return undefined
  return {
    ...(limit !== undefined && { limit }),
    ...(from && { from: from.getTime() }),
    ...(to && { to: to.getTime() }),
    ...(messageIds && { messageIds }),
  }
}

/** The number of threads that one transaction checks. */
const threadsPerCall = 50

/** Removes expired records, thread by thread in the order of their keys, as many as one small transaction may. */
export function pruneSome(tables: ThreadTables, policy: PrunePolicy): Pruned {
  const pruned: Pruned = { threadIds: [], messages: [], records: 0 }
  let threads = tables.threadsAfter(policy.after ?? 0, threadsPerCall)
  while (tables.lock?.(threads.map(({ id }) => id))) threads = tables.threadsAfter(policy.after ?? 0, threadsPerCall)
  for (const thread of threads) {
    if (thread.status !== 'idle' || thread.dueAt !== null) continue
    if (policy.threadsBefore !== undefined && thread.updatedAt < policy.threadsBefore) {
      endThread(tables, thread)
      pruned.threadIds.push(thread.id)
    } else {
      const messageIds = pruneMessages(tables, thread, policy, policy.limit - pruned.messages.length)
      for (const messageId of messageIds) pruned.messages.push({ threadId: thread.id, messageId })
      pruned.records += pruneRecords(tables, thread, policy, policy.limit - pruned.records)
    }
    // The same thread may have more.
    if (pruned.messages.length >= policy.limit || pruned.records >= policy.limit) return { ...pruned, next: thread.key - 1 }
    if (pruned.threadIds.length >= policy.limit) return { ...pruned, next: thread.key }
  }
  const last = threads.at(-1)
  return threads.length === threadsPerCall && last ? { ...pruned, next: last.key } : pruned
}

/** Continues where the last call stopped, and starts again from the first thread when it is due. */
export function pruneDue(tables: ThreadTables, { now, every, ...policy }: DuePolicy): Pruned | null {
  tables.lockAll?.('pruning')
  const { after, dueAt } = tables.pruning() ?? { after: 0, dueAt: now }
  // A due time that is too far ahead was written before the clock was set back: it is ignored.
  if (dueAt > now && dueAt <= now + every) return null
  const pruned = pruneSome(tables, { ...policy, after })
  tables.putPruning(pruned.next === undefined ? { after: 0, dueAt: now + every } : { after: pruned.next, dueAt: now })
  return pruned
}

/** Removes messages from the oldest on, up to the first that has not expired. */
function pruneMessages(tables: ThreadTables, thread: ThreadRecord, { messagesBefore }: PrunePolicy, limit: number): string[] {
  if (messagesBefore === undefined) return []
  const starts = tables.edgeStarts(thread, 'oldest', limit)
  const firstKept = starts.findIndex((row) => row.createdAt >= messagesBefore)
  const expired = (firstKept < 0 ? starts : starts.slice(0, firstKept)).filter(startsMessage).map(({ messageId }) => messageId)
  for (const id of expired) tables.removeMessage(thread, id)
  removeLaneSignals(tables, thread, expired)
  tables.removeQuotes(thread, expired)
  return expired
}

function pruneRecords(tables: ThreadTables, thread: ThreadRecord, { recordsBefore }: PrunePolicy, limit: number): number {
  return recordsBefore === undefined ? 0 : tables.removeRecords(thread, recordsBefore, limit)
}
