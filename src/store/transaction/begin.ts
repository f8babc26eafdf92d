import type { JSONObject } from '../../json.ts'
import type { MessageRow } from '../../message/row.ts'
import type { BegunRun, Fence, MailboxRow, Scope, Window, WindowOf } from '../contract.ts'
import { turnBoundary, windowStart } from '../window.ts'
import { laneRow, messageRow, runRow, threadRow } from './decode.ts'
import { fencedThread, scopedThread } from './guard.ts'
import { release } from './lease.ts'
import type { MailRecord, RowRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { placesOf } from './places.ts'
import { takeMail } from './take.ts'
import { runnable, startingRows } from './waiting.ts'

export function beginRun(tables: ThreadTables, fence: Fence, window: Window | WindowOf, agentIds?: readonly string[]): BegunRun | null {
  return planRun(tables, fence, window, agentIds)()
}

/** Everything that can refuse a begin; the answer writes. */
export function planRun(tables: ThreadTables, fence: Fence, window: Window | WindowOf, agentIds?: readonly string[]): () => BegunRun | null {
  const thread = fencedThread(tables, fence)
  const unfinished = thread.begun === 1 && thread.runId !== null ? tables.run(thread, thread.runId) : undefined
  if (unfinished) {
    const marks = marksOf(window, unfinished)
    return () => {
      unfinished.epoch = fence.epoch
      unfinished.attempts += 1
      tables.putRun(thread, unfinished)
      return begun(tables, thread, unfinished, marks)
    }
  }

  const pending = tables.pending(thread)
  const start = startingRows(runnable(pending, fence.owner, agentIds), thread.runId)
  const [first] = start?.rows ?? []
  if (!start || !first) {
    return () => {
      release(tables, thread, pending.length > 0)
      tables.putThread(thread)
      return null
    }
  }
  const { agentId } = first
  const options = start.rows.find((mail) => mail.options !== null)?.options ?? '{}'
  const marks = marksOf(window, { agentId, options })
  return () => {
    const isNew = first.atHand?.newRun === true && first.startRunId === start.runId
    // A caller may have promised an id that an earlier run of the thread has.
    const runId = !isNew && tables.run(thread, start.runId) ? tables.newId() : start.runId
    const { run, taken } = startRun(tables, thread, { runId, agentId, options }, start.rows)
    return begun(tables, thread, run, marks, taken)
  }
}

function marksOf(window: Window | WindowOf, { agentId, options }: Pick<RunRecord, 'agentId' | 'options'>): Window {
  return typeof window === 'function' ? window({ agentId, options: options === '{}' ? {} : (JSON.parse(options) as JSONObject) }) : window
}

function startRun(
  tables: ThreadTables, thread: ThreadRecord, what: Pick<RunRecord, 'runId' | 'agentId' | 'options'>, rows: MailRecord[],
): { run: RunRecord; taken: MailboxRow[] } {
  const firstSeq = thread.nextSeq
  const taken = takeMail(tables, thread, rows, { runId: what.runId, step: 0 })
  const run: RunRecord = {
    runId: what.runId,
    agentId: what.agentId,
    status: 'running',
    epoch: thread.epoch,
    step: 0,
    attempts: 1,
    options: what.options,
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
    lost: null,
    ordinal: thread.ordinal,
    taken: placesOf(rows),
  }
  tables.addRun(thread, run)
  thread.runId = what.runId
  thread.agentId = what.agentId
  thread.begun = 1
  tables.putThread(thread)
  return { run, taken }
}

/** Without what was taken, it continues. */
function begun(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, window: Window, taken?: MailboxRow[]): BegunRun {
  const lanes = tables.lanes(thread)
  return {
    run: runRow(thread, run),
    thread: threadRow(thread, lanes),
    lanes: lanes.filter(({ version }) => version > 0).map((lane) => laneRow(thread, lane)),
    rows: windowRows(tables, thread, run, window).map((row) => tables.decoded?.(thread, row) ?? messageRow(thread, row)),
    taken: taken ?? [],
    resumed: taken === undefined,
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
