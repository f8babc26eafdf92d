import { HeedError } from '../../base/errors.ts'
import type { MessageRow } from '../../message/row.ts'
import type { BegunRun, Fence, MailboxRow, Scope, Window, Windows } from '../contract/threads.ts'
import { turnBoundary, windowStart } from '../contract/window.ts'
import { fencedThread, releaseLease, scopedThread } from './lease.ts'
import { encodeOrdRanges, runnable, startingMail, takeMail } from './mailbox.ts'
import { laneRow, messageRow, runRow, threadRow, type MailRecord, type RowRecord, type RunRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

export function beginRun(tables: ThreadTables, fence: Fence, windows: Windows): BegunRun | null {
  const thread = fencedThread(tables, fence)
  const unfinished = thread.begun === 1 && thread.runId !== null ? tables.run(thread, thread.runId) : undefined
  if (unfinished) return continueRun(tables, thread, unfinished, windows)

  const pending = tables.pending(thread)
  const start = startingMail(runnable(pending, fence.owner, [...windows.keys()]), thread.runId)
  const [first] = start?.mail ?? []
  const agentWindow = first && windows.get(first.agentId)
  if (!start || !first || agentWindow === undefined) {
    releaseLease(tables, thread, pending.length > 0)
    tables.putThread(thread)
    return null
  }
  const options = start.mail.find((mail) => mail.options !== null)?.options ?? '{}'
  const isNew = first.prepared?.newRun === true && first.startRunId === start.runId
  // A caller may have chosen the id of an earlier run of the thread.
  const runId = !isNew && tables.run(thread, start.runId) ? tables.newId() : start.runId
  const { run, taken } = startRun(tables, thread, { runId, agentId: first.agentId, options }, start.mail)
  return begunRun(tables, thread, run, windowIn(options, agentWindow), taken)
}

function continueRun(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, windows: Windows): BegunRun {
  const agentWindow = windows.get(run.agentId)
  if (agentWindow === undefined) {
    const { runId, agentId } = run
    throw new HeedError('unknown_agent', `Run ${runId} of thread ${thread.id} is of agent '${agentId}', which this process does not run.`, {
      details: { agentId, runId },
    })
  }
  run.epoch = thread.epoch
  run.attempts += 1
  tables.putRun(thread, run)
  return begunRun(tables, thread, run, windowIn(run.options, agentWindow))
}

/** The window in the options of a run, else that of its agent. */
function windowIn(options: string, agentWindow: Window): Window {
  if (!options.includes('"window"')) return agentWindow
  const { window } = JSON.parse(options) as { window?: Window }
  return window ?? agentWindow
}

function startRun(
  tables: ThreadTables, thread: ThreadRecord, { runId, agentId, options }: Pick<RunRecord, 'runId' | 'agentId' | 'options'>,
  mail: MailRecord[],
): { run: RunRecord; taken: MailboxRow[] } {
  const firstSeq = thread.nextSeq
  const taken = takeMail(tables, thread, mail, { runId, step: 0 })
  const run: RunRecord = {
    runId,
    agentId,
    status: 'running',
    epoch: thread.epoch,
    step: 0,
    attempts: 1,
    options,
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
    taken: encodeOrdRanges(mail),
  }
  tables.addRun(thread, run)
  thread.runId = runId
  thread.agentId = agentId
  thread.begun = 1
  tables.putThread(thread)
  return { run, taken }
}

/** Without `taken`, the run is continued. */
function begunRun(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, window: Window, taken?: MailboxRow[]): BegunRun {
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

/** The rows of the window as it was when the run began, and at least all rows of the run itself. */
function windowRows(tables: ThreadTables, thread: ThreadRecord, run: Pick<RunRecord, 'firstSeq' | 'ordinal'>, window: Window): RowRecord[] {
  if (window === false) return tables.rowsFrom(thread, run.firstSeq)
  const start = windowStart(run.ordinal, window)
  if (start === 0) return tables.rowsFrom(thread, 0)

  // Deleted messages leave gaps in the ordinals; the low mark counts the messages that exist.
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
