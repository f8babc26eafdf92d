import { HeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { BegunRun, Fence, MailboxRow, Scope, Window, Windows } from '../contract/threads.ts'
import { turnBoundary, windowStart } from '../contract/window.ts'
import { laneRow, messageRow, runRow, threadRow } from './decode.ts'
import { fencedThread, scopedThread } from './guard.ts'
import { release } from './lease.ts'
import type { MailRecord, RowRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { placesOf } from './places.ts'
import { takeMail } from './take.ts'
import { runnable, startingRows } from './waiting.ts'

export function beginRun(tables: ThreadTables, fence: Fence, windows: Windows): BegunRun | null {
  const thread = fencedThread(tables, fence)
  const unfinished = thread.begun === 1 && thread.runId !== null ? tables.run(thread, thread.runId) : undefined
  if (unfinished) return continueRun(tables, thread, unfinished, windows)

  const pending = tables.pending(thread)
  const start = startingRows(runnable(pending, fence.owner, [...windows.keys()]), thread.runId)
  const [first] = start?.rows ?? []
  const agentWindow = first && windows.get(first.agentId)
  if (!start || !first || agentWindow === undefined) {
    release(tables, thread, pending.length > 0)
    tables.putThread(thread)
    return null
  }
  const options = start.rows.find((mail) => mail.options !== null)?.options ?? '{}'
  const isNew = first.atHand?.newRun === true && first.startRunId === start.runId
  // A caller may have promised an id that an earlier run of the thread has.
  const runId = !isNew && tables.run(thread, start.runId) ? tables.newId() : start.runId
  const { run, taken } = startRun(tables, thread, { runId, agentId: first.agentId, options }, start.rows)
  return begun(tables, thread, run, windowIn(options, agentWindow), taken)
}

function continueRun(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, windows: Windows): BegunRun {
  const agentWindow = windows.get(run.agentId)
  if (agentWindow === undefined) {
    throw new HeedError('unknown_agent', `Run ${run.runId} of thread ${thread.id} is of agent '${run.agentId}', which this process does not run.`, {
      details: { agentId: run.agentId, runId: run.runId },
    })
  }
  run.epoch = thread.epoch
  run.attempts += 1
  tables.putRun(thread, run)
  return begun(tables, thread, run, windowIn(run.options, agentWindow))
}

/** The window that the options of a run name, else that of its agent. */
function windowIn(options: string, agentWindow: Window): Window {
  if (!options.includes('"window"')) return agentWindow
  const { window } = JSON.parse(options) as { window?: Window }
  return window ?? agentWindow
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
