import type { MessagePart } from '../../message/message.ts'
import { settleTail } from './append.ts'
import { forgetLaneSignals } from './lanes.ts'
import { release } from './lease.ts'
import type { RowRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { threadsBelow } from './threads.ts'
import { cancelMail } from './waiting.ts'

/**
 * Takes the rows from `seq` on out of a thread, and with them what their calls asked of other agents on the threads below. Answers the ids of
 * the threads that went.
 */
export function takeBackFrom(tables: ThreadTables, thread: ThreadRecord, seq: number): string[] {
  const below = tables.children(thread)
  const going = below.length > 0 || tables.lanes(thread).length > 0 ? tables.rowsFrom(thread, seq) : []
  const gone = below.length > 0 ? going.flatMap((row) => askedBy(row).flatMap(({ toolCallId, runId }) => unask(tables, thread, toolCallId, runId))) : []
  forgetLaneSignals(tables, thread, going.map(({ id }) => id))
  tables.removeRowsFrom(thread, seq)
  const last = tables.lastRow(thread)
  thread.ordinal = last?.ordinal ?? 0
  thread.turn = last?.turn ?? 0
  return gone
}

/** The calls of a row, with the run that each would have begun below: they are named after the call. */
function askedBy({ role, runId, step, content }: RowRecord): Array<{ toolCallId: string; runId: string }> {
  if (role !== 'assistant' || !content.includes('"tool-invocation"')) return []
  const { parts } = JSON.parse(content) as { parts: MessagePart[] }
  return parts.flatMap((part) => (part.type === 'tool-invocation' ? { toolCallId: part.toolInvocation.toolCallId, runId: `${runId}/${step}/${part.toolInvocation.toolCallId}` } : []))
}

/** Whoever is still at work there is refused by its next commit: the thread is gone, or is no longer its own. */
function unask(tables: ThreadTables, parent: ThreadRecord, toolCallId: string, runId: string): string[] {
  const thread = tables.thread(`${parent.id}/${toolCallId}`)
  if (!thread || thread.parentId !== parent.id || thread.resourceId !== parent.resourceId) return []
  const rows = tables.rowsFrom(thread, 0)
  const own = rows.findIndex((row) => row.runId === runId)
  // Some providers number their calls anew in every step: then earlier ones were asked on the same thread.
  if (rows.length > 0 && own !== 0) return endBelow(tables, thread, runId, rows[own]?.seq)
  const going = [...threadsBelow(tables, thread), thread]
  for (const one of going) tables.removeThread(one)
  return going.map(({ id }) => id)
}

function endBelow(tables: ThreadTables, thread: ThreadRecord, runId: string, seq: number | undefined): string[] {
  const mail = tables.mail(thread, runId)
  if (mail?.state === 'pending') cancelMail(tables, thread, mail, 'The run that asked it was refused.')
  const gone = seq === undefined ? [] : takeBackFrom(tables, thread, seq)
  const run = tables.run(thread, runId)
  if (run) tables.putRun(thread, { ...run, status: 'rejected', staged: null, endedAt: run.endedAt ?? tables.now(), taken: null })
  if (thread.runId === runId) {
    tables.settleTaken(thread, run?.taken ?? null, 'rejected', null)
    settleTail(tables, thread)
    thread.epoch += 1
    release(tables, thread, tables.pending(thread).length > 0)
  }
  tables.putThread(thread)
  return gone
}
