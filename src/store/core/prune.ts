import type { DuePolicy, PrunePolicy, Pruned } from '../contract/messages.ts'
import { forgetLaneSignals } from './lanes.ts'
import type { RowRecord, ThreadRecord } from './records.ts'
import { startsMessage } from './starts.ts'
import type { ThreadTables } from './tables.ts'

/** Threads that one transaction looks at. */
const threadsAtOnce = 50

/** Goes over the threads by their keys and removes what is too old, as much as one small transaction may. */
export function pruneSome(tables: ThreadTables, policy: PrunePolicy): Pruned {
  const pruned: Pruned = { threadIds: [], messages: [], records: 0 }
  const threads = tables.threadsAfter(policy.after ?? 0, threadsAtOnce)
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
  return threads.length === threadsAtOnce && last ? { ...pruned, next: last.key } : pruned
}

/** Goes on where the last call stopped, and begins anew when it is time. */
export function pruneDue(tables: ThreadTables, { now, every, ...policy }: DuePolicy): Pruned | null {
  const { after, dueAt } = tables.pruning() ?? { after: 0, dueAt: now }
  // A clock that was set back must not keep anything for long.
  if (dueAt > now && dueAt <= now + every) return null
  const pruned = pruneSome(tables, { ...policy, after })
  tables.putPruning(pruned.next === undefined ? { after: 0, dueAt: now + every } : { after: pruned.next, dueAt: now })
  return pruned
}

/** From the oldest on, up to the first that is young enough. */
function pruneMessages(tables: ThreadTables, thread: ThreadRecord, { messagesBefore }: PrunePolicy, limit: number): string[] {
  if (messagesBefore === undefined) return []
  const starts = tables.edgeStarts(thread, 'oldest', limit)
  const young = starts.findIndex((row) => row.createdAt >= messagesBefore)
  const old = (young < 0 ? starts : starts.slice(0, young)).filter(startsMessage).map(({ messageId }) => messageId)
  for (const id of old) tables.removeMessage(thread, id)
  forgetLaneSignals(tables, thread, old)
  tables.removeQuotes(thread, old)
  return old
}

function pruneRecords(tables: ThreadTables, thread: ThreadRecord, { recordsBefore }: PrunePolicy, limit: number): number {
  return recordsBefore === undefined ? 0 : tables.removeRecords(thread, recordsBefore, limit)
}

export type StartRow = Pick<RowRecord, 'messageId' | 'createdAt' | 'role' | 'counted'>
