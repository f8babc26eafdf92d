import type { DuePolicy, PrunePolicy, Pruned } from '../contract/messages.ts'
import { removeLaneSignals } from './lanes.ts'
import { startsMessage, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** The number of threads that one transaction checks. */
const threadsPerCall = 50

/** Removes expired records, thread by thread in the order of their keys, as many as one small transaction may. */
export function pruneSome(tables: ThreadTables, policy: PrunePolicy): Pruned {
  const pruned: Pruned = { threadIds: [], messages: [], records: 0 }
  const threads = tables.threadsAfter(policy.after ?? 0, threadsPerCall)
  for (const thread of threads) {
    if (thread.status !== 'idle' || thread.dueAt !== null) continue
    if (policy.threadsBefore !== undefined && thread.updatedAt < policy.threadsBefore) {
      tables.removeThread(thread)
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
