import { newId } from '../../ids.ts'
import type { MessageRow } from '../../message/row.ts'
import type { BegunRun, Fence, MailboxRow, Scope, Window, WindowOf } from '../contract.ts'
import { turnBoundary, windowStart } from '../window.ts'
import { messageRow, runRow, threadRow } from './decode.ts'
import { fencedThread, scopedThread } from './guard.ts'
import { release } from './lease.ts'
import type { MailRecord, RowRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { takeMail } from './take.ts'
import { runnable, startingRows } from './waiting.ts'

export function beginRun(tables: ThreadTables, fence: Fence, window: Window | WindowOf, agentIds?: readonly string[]): BegunRun | null {
  const thread = fencedThread(tables, fence)
  const unfinished = thread.begun === 1 && thread.runId !== null ? tables.run(thread, thread.runId) : undefined
  if (unfinished) {
    unfinished.epoch = fence.epoch
    unfinished.attempts += 1
    tables.putRun(thread, unfinished)
    return { ...begun(tables, thread, unfinished, window), taken: [], resumed: true }
  }

  const pending = tables.pending(thread)
  const start = startingRows(runnable(pending, fence.owner, agentIds), thread.runId)
  const [first] = start?.rows ?? []
  if (!start || !first) {
    release(tables, thread, pending.length > 0)
    tables.putThread(thread)
    return null
  }
  // A caller may have promised an id that an earlier run of the thread has.
  const runId = tables.run(thread, start.runId) ? newId() : start.runId
  const { run, taken } = startRun(tables, thread, runId, first.agentId, start.rows)
  return { ...begun(tables, thread, run, window), taken, resumed: false }
}

function startRun(tables: ThreadTables, thread: ThreadRecord, runId: string, agentId: string, rows: MailRecord[]): { run: RunRecord; taken: MailboxRow[] } {
  const firstSeq = thread.nextSeq
  const taken = takeMail(tables, thread, rows, { runId, step: 0 })
  const run: RunRecord = {
    runId,
    agentId,
    status: 'running',
    epoch: thread.epoch,
    step: 0,
    attempts: 1,
    options: rows.find((mail) => mail.options !== null)?.options ?? '{}',
    started: '[]',
    suspended: '[]',
    startedAt: tables.now(),
    endedAt: null,
    suspendedAt: null,
    error: null,
    usage: null,
    firstSeq,
    sealSeq: firstSeq,
    staged: null,
    ordinal: thread.ordinal,
  }
  tables.addRun(thread, run)
  thread.runId = runId
  thread.agentId = agentId
  thread.begun = 1
  tables.putThread(thread)
  return { run, taken }
}

function begun(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, window: Window | WindowOf): Pick<BegunRun, 'run' | 'thread' | 'rows'> {
  const row = runRow(thread, run)
  return {
    run: row,
    thread: threadRow(thread),
    rows: windowRows(tables, thread, run, typeof window === 'function' ? window(row) : window).map((row) => messageRow(thread, row)),
  }
}

/** Where the window lay as the run began, and never less than the run itself. */
function windowRows(tables: ThreadTables, thread: ThreadRecord, run: Pick<RunRecord, 'firstSeq' | 'ordinal'>, window: Window): RowRecord[] {
  if (window === false) return tables.rowsFrom(thread, run.firstSeq)
  const start = windowStart(run.ordinal, window)
  if (start === 0) return tables.rowsFrom(thread, 0)

  // Messages that were deleted leave gaps in the ordinals; the low mark counts those that are there.
  const lowest = tables.countedBack(thread, run.ordinal, window.low)
  const first = tables.countedFrom(thread, Math.min(start + 1, lowest?.ordinal ?? 1))
  const boundary = first && tables.countedFrom(thread, turnBoundary(first, window))
  return tables.rowsFrom(thread, Math.min(boundary?.seq ?? run.firstSeq, run.firstSeq))
}

export function readWindow(tables: ThreadTables, scope: Scope, window: Window, coming: number): MessageRow[] {
  const thread = scopedThread(tables, scope)
  const run = { firstSeq: thread.nextSeq, ordinal: thread.ordinal + coming }
  return windowRows(tables, thread, run, window).map((row) => messageRow(thread, row))
}
