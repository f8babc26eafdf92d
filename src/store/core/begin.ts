import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { editOf, runToEdit, triedIn } from '../../editor/machine.ts'
import { isRecallBlock, type MessageRow } from '../../message/row.ts'
import type { BegunRun, Claimed, Fence, FormerLease, MailboxRow, Scope, Window, Windows } from '../contract/threads.ts'
import { cutOrdinal, isExact, turnBoundary, windowStart } from '../contract/window.ts'
import { fencedThread, grantLease, isAlive, releaseLease, reserveRun, scopedThread, transitionThread } from './lease.ts'
import { cancelMail, encodeOrdRanges, runnable, startingMail, takeMail } from './mailbox.ts'
import {
  laneRow, messageRow, runRow, threadRow, type MailRecord, type RowRecord, type RunRecord, type TakeoverRecord, type ThreadRecord,
  type ThreadRef,
} from './records.ts'
import type { ThreadTables } from './tables.ts'

export function claimThread(
  tables: ThreadTables, threadId: string, owner: string, agentIds?: readonly string[], again?: FormerLease,
): Claimed | null {
  if (tables.processes.isResting) return null
  tables.lock?.([threadId])
  const thread = tables.thread(threadId)
  if (!thread || thread.status === 'suspended') return null
  const mine = again !== undefined && thread.owner === again.owner && thread.epoch === again.epoch
  // The claimer itself is alive, whatever its heartbeat says: a host of it may run the thread.
  if (thread.owner !== null && !mine && (thread.owner === owner || isAlive(tables, thread.owner))) return null
  if (thread.begun === 1 && thread.agentId !== null) {
    const claimed = takeOver(tables, thread, thread.agentId, owner, agentIds)
    if (claimed && again?.excused) excuseAttempt(tables, thread)
    return claimed
  }

  const pending = cancelAbandoned(tables, thread, owner)
  const start = startingMail(runnable(pending, owner, agentIds), thread.runId)
  const agentId = start?.mail[0]?.agentId
  if (!start || agentId === undefined) {
    const isReleased = thread.status === 'idle' && thread.dueAt === null && pending.length === 0
    if (!isReleased) {
      releaseLease(tables, thread, pending.length > 0)
      tables.putThread(thread)
    }
    return null
  }
  const lost = thread.status === 'idle' ? undefined : thread.owner
  const fence = grantLease(thread, thread.status === 'idle' ? 'wake' : 'take-over', owner)
  if (lost !== undefined) addTakeover(tables, thread, fence, { runId: start.runId, step: 0, lost })
  reserveRun(thread, start.runId, agentId)
  tables.putThread(thread)
  return { fence, agentId, takenOver: false }
}

function takeOver(
  tables: ThreadTables, thread: ThreadRecord, agentId: string, owner: string, agentIds: readonly string[] | undefined,
): Claimed | null {
  if (agentIds && !agentIds.includes(agentId)) return null
  const run = thread.runId === null ? undefined : tables.run(thread, thread.runId)
  const lost = thread.owner
  const fence = grantLease(thread, 'take-over', owner)
  // A decision released the lease; the first claim after it takes nothing over.
  if (run && (lost !== null || run.attempts > 0)) addTakeover(tables, thread, fence, { runId: run.runId, step: run.step, lost })
  tables.putThread(thread)
  return { fence, agentId, takenOver: true }
}

/** Records that another process has the lease now. */
function addTakeover(
  tables: ThreadTables, thread: ThreadRecord, { owner, epoch }: Fence, taken: Pick<TakeoverRecord, 'runId' | 'step' | 'lost'>,
): void {
  tables.steps.addTakeover(thread, { ...taken, owner, epoch, at: tables.now() })
}

/** The last attempt does not count towards parking the run: the store failed, not the run. */
function excuseAttempt(tables: ThreadTables, thread: ThreadRecord): void {
  const run = thread.runId === null ? undefined : tables.run(thread, thread.runId)
  if (!run) return
  // At least 1: tool calls of the first attempt that had started count as interrupted.
  run.attempts = Math.max(1, run.attempts - 1)
  tables.putRun(thread, run)
}

/** Cancels the pending signals that are bound to a process that is gone, as their callers are too. Returns the others. */
function cancelAbandoned(tables: ThreadTables, thread: ThreadRecord, owner: string): MailRecord[] {
  return tables.pending(thread).filter((mail) => {
    if (mail.boundTo === null || mail.boundTo === owner || isAlive(tables, mail.boundTo)) return true
    cancelMail(tables, thread, mail, 'The process of its caller is gone.')
    return false
  })
}

export function resign(tables: ThreadTables, owner: string): void {
  tables.lockOwned?.(owner)
  tables.handOver(owner)
  tables.cancelBound(owner, 'The process of its caller ended before its run began.')
  tables.processes.close(owner)
}

export function beginRun(tables: ThreadTables, fence: Fence, windows: Windows): BegunRun | null {
  tables.lock?.([fence.threadId])
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
  const given = start.mail.find((mail) => mail.options !== null)?.options ?? '{}'
  const options = windows.edited?.has(first.agentId) ? withEdit(tables, thread, first.agentId, given) : given
  const isNew = first.prepared?.newRun === true && first.startRunId === start.runId
  // A caller may have chosen the id of an earlier run of the thread.
  const runId = !isNew && tables.run(thread, start.runId) ? tables.newId() : start.runId
  const window = windowIn(options, agentWindow)
  tables.foreseeWindow?.(thread, window)
  const { run, taken } = startRun(tables, thread, { runId, agentId: first.agentId, options }, start.mail)
  return begunRun(tables, thread, run, window, taken)
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

/** The options of a run with the version of its agent that it gets. */
function withEdit(tables: ThreadTables, { id, resourceId }: ThreadRecord, agentId: string, given: string): string {
  const options = JSON.parse(given) as JSONObject
  const run = runToEdit(options, { agentId, threadId: id, resourceId })
  const edit = editOf(tables.edits, run, triedIn(options))
  return edit ? JSON.stringify({ ...options, edit }) : given
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
  for (const one of mail) if ((one.route === 'deliver' || one.route === 'interrupt') && one.runId !== runId) one.route = 'wake'
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
    decisions: null,
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
  const { rows, cut } = windowRows(tables, thread, run, window)
  return {
    run: runRow(thread, run),
    thread: threadRow(thread, lanes),
    lanes: lanes.filter(({ version }) => version > 0).map((lane) => laneRow(thread, lane)),
    rows: rows.map((row) => tables.decoded?.(thread, row) ?? messageRow(thread, row)),
    taken: taken ?? [],
    resumed: taken === undefined,
    window: { from: rows[0]?.seq ?? run.firstSeq, cut },
  }
}

/**
 * The rows of the window as it was when the run began, and at least all rows of the run itself. Recall blocks from before the last cut are
 * left out: they answer earlier questions, and the prompt has changed at that cut anyway. `coming`: messages that the ordinal counts and
 * the thread does not have yet.
 */
function windowRows(
  tables: ThreadTables, thread: ThreadRecord, run: Pick<RunRecord, 'firstSeq' | 'ordinal'>, window: Window, coming = 0,
): { rows: RowRecord[]; cut: number } {
  if (window === false) return { rows: tables.rowsFrom(thread, run.firstSeq), cut: 0 }
  // An exact window counts the messages before the input.
  const ordinal = isExact(window) ? run.ordinal - coming - inputCount(tables, thread, run) : run.ordinal
  const start = windowStart(ordinal, window)
  if (start === 0) return { rows: tables.rowsFrom(thread, 0), cut: 0 }

  // Deleted messages leave gaps in the ordinals; the low mark counts the messages that exist.
  const lowest = tables.countedBack(thread, ordinal, window.low)
  const first = tables.countedFrom(thread, Math.min(start + 1, lowest?.ordinal ?? 1))
  const boundary = first && tables.countedFrom(thread, turnBoundary(first, window))
  const cut = cutOrdinal(start, window)
  const rows = tables.rowsFrom(thread, Math.min(boundary?.seq ?? run.firstSeq, run.firstSeq))
  return { rows: rows.filter((row) => !isCut(thread, row, cut)), cut }
}

/** Whether the row is a recall block from before the cut of a window. */
export function isCut(thread: ThreadRef, row: RowRecord, cut: number): boolean {
  return row.role === 'context' && row.ordinal < cut && isRecallBlock(messageRow(thread, row))
}

/** The number of counted messages in the input that started a run. */
function inputCount(tables: ThreadTables, thread: ThreadRecord, { firstSeq, ordinal }: Pick<RunRecord, 'firstSeq' | 'ordinal'>): number {
  return tables.rowsFrom(thread, firstSeq).filter((row) => row.counted > 0 && row.ordinal <= ordinal).length
}

export function readWindow(tables: ThreadTables, scope: Scope, window: Window, coming: number): MessageRow[] {
  const thread = scopedThread(tables, scope)
  const run = { firstSeq: thread.nextSeq, ordinal: thread.ordinal + coming }
  return windowRows(tables, thread, run, window, coming).rows.map((row) => messageRow(thread, row))
}

export function retryParked(
  tables: ThreadTables, scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] },
): { agentId: string; fence?: Fence } {
  tables.lock?.([scope.threadId])
  const thread = scopedThread(tables, scope)
  const run = tables.run(thread, runId)
  if (run?.status !== 'parked') throw notRetryable(thread, runId, 'it is not parked')
  if (thread.status !== 'idle') throw notRetryable(thread, runId, 'the thread is active; retry when it is idle')
  if (hasLaterRun(tables, thread, run)) {
    throw notRetryable(thread, runId, 'later runs have written to the thread; send its input again instead')
  }

  for (const id of options.removed ?? []) tables.removeMessage(thread, id)
  run.status = 'running'
  // Not the first attempt: tool calls that had started count as interrupted.
  run.attempts = 1
  run.endedAt = null
  run.error = null
  run.sealSeq = thread.nextSeq
  const fence = options.owner === undefined || tables.processes.isResting ? undefined : grantLease(thread, 'wake', options.owner)
  if (!fence) {
    transitionThread(thread, 'wake')
    thread.dueAt = tables.now()
  }
  thread.runId = run.runId
  thread.agentId = run.agentId
  thread.begun = 1
  tables.putRun(thread, run)
  tables.putThread(thread)
  return { agentId: run.agentId, ...(fence && { fence }) }
}

function hasLaterRun(tables: ThreadTables, thread: ThreadRecord, { runId, firstSeq }: RunRecord): boolean {
  return tables.rowsFrom(thread, firstSeq).some((row) => row.runId !== null && row.runId !== runId)
}

function notRetryable({ id }: ThreadRecord, runId: string, why: string): HeedError {
  return new HeedError('run_not_parked', `Run ${runId} of thread ${id} can't be retried: ${why}.`, { details: { threadId: id, runId } })
}
