import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { enteringSignals } from '../../machine.ts'
import type { MessageRow } from '../../message/row.ts'
import type { WorkflowCommit } from '../contract/workflows.ts'
import type { Fence, MailboxRow, ModelCall, RunEnd, StepCommit, StepCommitted, SuspendedCall } from '../contract/threads.ts'
import { removeRowsFrom, resumeRun, withChildDecisions } from './child-threads.ts'
import { wasDecided } from './decision-records.ts'
import { advanceLane, removeLaneSignals, withLaneVersion } from './lanes.ts'
import { fencedThread, releaseLease, reserveRun, transitionThread } from './lease.ts'
import { encodeOrdRanges, finishTaken, pendingAfterRun, runnable, startingMail, takeMail } from './mailbox.ts'
import { appendToRun, mergeTail, removeStaleQuotes, rowsWithValidQuotes } from './messages.ts'
import {
  jsonOrNull, prepareRows, type MailRecord, type PreparedRow, type RunRecord, type StepRecord, type ThreadRecord,
} from './records.ts'
import type { ThreadTables } from './tables.ts'
import { markUntitled } from './threads.ts'
import { applyStaged } from './working-memory.ts'

export function commitStep(tables: ThreadTables, fence: Fence, commit: StepCommit): StepCommitted {
  tables.lock?.(threadsOf(fence, commit), { below: commit.end?.status === 'rejected' })
  const thread = fencedThread(tables, fence)
  const run = thread.begun === 1 && thread.runId === commit.runId ? tables.run(thread, commit.runId) : undefined
  if (!run || run.status !== 'running') throw notActive(commit.runId, fence.threadId)
  const { end } = commit
  const encoded = encodeCommit(commit)
  if (end?.status === 'rejected') {
    if (commit.call) addStep(tables, thread, fence, commit, commit.call)
    if (commit.removed) removeMessages(tables, thread, commit.removed)
    const gone = reject(tables, thread, run, end.error)
    return { rows: [], taken: [], ...endRun(tables, thread, run, end, encoded, fence.owner), ...(gone.length > 0 && { gone }) }
  }

  const revised = commit.revised && prepareRows(commit.revised)
  const lane = commit.lane && !tables.row(thread, commit.lane.rowId) ? commit.lane : undefined
  const kept = commit.quoted ? rowsWithValidQuotes(tables, thread, commit.rows, commit.quoted) : commit.rows
  const appended = prepareRows(lane ? withLaneVersion(tables, thread, kept, lane) : kept, commit)
  if (commit.call) addStep(tables, thread, fence, commit, commit.call)
  if (revised) for (const row of revised) reviseRow(tables, thread, run, row)
  if (commit.removed) removeMessages(tables, thread, commit.removed)
  if (commit.workflow) recordWorkflow(tables, thread, run, commit.workflow)
  const rows = appendToRun(tables, thread, appended)
  if (lane) advanceLane(tables, thread, lane, lane.rowId)
  const taken = commit.drain === true ? drain(tables, thread, run, commit.step + 1, fence.owner) : []
  const ends = end !== undefined && taken.length === 0
  recordProgress(run, commit, encoded, ends)
  if (ends) return Object.assign(endRun(tables, thread, run, end, encoded, fence.owner), { rows, taken })

  tables.putRun(thread, run)
  tables.putThread(thread)
  const waits = commit.drain === 'look' && enteringMail(tables, thread, run, fence.owner).length > 0
  return { rows, taken, ended: false, more: false, ...(waits && { waits }) }
}

/** Adds the step of a model call. Encodes it before it writes. */
function addStep(tables: ThreadTables, thread: ThreadRecord, { owner, epoch }: Fence, { runId, step }: StepCommit, call: ModelCall): void {
  const { head, window } = call
  const record: StepRecord = {
    seq: thread.nextSeq,
    step,
    epoch,
    runId,
    owner,
    startedAt: call.startedAt,
    finishedAt: tables.now(),
    provider: call.provider ?? null,
    modelId: call.modelId ?? null,
    specification: call.specification ?? null,
    finish: call.finishReason ?? null,
    usage: jsonOrNull(call.usage),
    head: head.hash,
    windowFrom: window.from,
    windowCut: window.cut,
    rowCount: call.rows,
    messages: call.messages,
    hash: call.hash,
    altered: call.altered === undefined ? null : JSON.stringify(call.altered),
  }
  // Before the step: a store with row locks waits here for a transaction that removes the head, which also removes what refers to it.
  if (head.text !== undefined) tables.steps.putHead(head)
  tables.steps.add(thread, record)
}

/** The threads that a commit reads: its own, those that it quotes, and those of agents that its calls wait for. */
function threadsOf({ threadId }: Fence, { quoted = [], end }: StepCommit): string[] {
  const calls = end?.status === 'suspended' ? end.calls : []
  return [threadId, ...quoted.map((quote) => quote.threadId), ...calls.flatMap(({ child }) => child?.threadId ?? [])]
}

/** The columns of a run that a commit sets. Encoding fails on values that are not JSON, so it precedes the first write. */
interface EncodedCommit {
  usage: string | null
  error: string | null
  lost: string | null
}

function encodeCommit({ end, lost, started, workflow }: StepCommit): EncodedCommit {
  if (workflow) JSON.stringify(workflow)
  if (end?.status === 'suspended') JSON.stringify(end.calls)
  if (started) JSON.stringify(started)
  return {
    usage: end && 'usage' in end ? jsonOrNull(end.usage) : null,
    error: end && 'error' in end ? jsonOrNull(end.error) : null,
    lost: jsonOrNull(lost),
  }
}

function recordWorkflow(tables: ThreadTables, thread: ThreadRecord, { agentId }: RunRecord, { scores, ...commit }: WorkflowCommit): void {
  tables.workflows.put(thread, commit)
  if (scores) tables.scores.add(thread, { agentId, runId: commit.runId, step: 1 }, scores, tables.now())
}

function removeMessages(tables: ThreadTables, thread: ThreadRecord, ids: readonly string[]): void {
  for (const id of ids) if (!tables.removeMessage(thread, id)) tables.removeRow(thread, id)
  removeLaneSignals(tables, thread, ids)
}

function reviseRow(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, { stored }: PreparedRow): void {
  const existing = tables.row(thread, stored.id)
  if (!existing) return
  const revised = { ...existing, ...stored, runId: existing.runId, step: existing.step, decoded: undefined }
  // Only sealed rows can be quoted.
  if (existing.seq < run.sealSeq) removeStaleQuotes(tables, thread, existing.messageId, [existing], [revised])
  tables.reviseRow(thread, revised)
}

function enteringMail(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, owner: string): MailRecord[] {
  return enteringSignals(runnable(tables.pending(thread), owner), run.agentId)
}

/** New input seals the rows before it: a guardrail that rejects later removes only the rows after it. */
function drain(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, step: number, owner: string): MailboxRow[] {
  const mail = enteringMail(tables, thread, run, owner)
  if (mail.length === 0) return []
  finishTaken(tables, thread, run, 'consumed', null)
  run.sealSeq = thread.nextSeq
  run.taken = encodeOrdRanges(mail)
  if (run.staged !== null) applyStaged(tables, run)
  return takeMail(tables, thread, mail, { runId: run.runId, step })
}

function recordProgress(run: RunRecord, commit: StepCommit, encoded: EncodedCommit, ends: boolean): void {
  if (encoded.lost !== null) run.lost = encoded.lost
  // A parked run may be retried: the step that it stopped in is not done.
  const isDone = commit.drain !== undefined || (ends && commit.end?.status !== 'suspended' && commit.end?.status !== 'parked')
  run.step = isDone ? commit.step + 1 : commit.step
  if (isDone) {
    run.suspended = '[]'
    // The run made progress, so earlier attempts no longer count towards parking it.
    if (!ends) run.attempts = 1
  }
  if (run.started === '[]' && !commit.started?.length) return
  const finished = finishedCalls(commit.rows)
  if (commit.notStarted) for (const toolCallId of commit.notStarted) finished.add(toolCallId)
  // A suspended call begins, or begins again, after its decision.
  if (ends && commit.end?.status === 'suspended') for (const { toolCallId } of commit.end.calls) finished.add(toolCallId)
  const started = new Set([...(JSON.parse(run.started) as string[]), ...(commit.started ?? [])])
  run.started = JSON.stringify([...started].filter((id) => !finished.has(id)))
}

/** The calls whose outcome is in these rows. */
function finishedCalls(rows: readonly MessageRow[]): Set<string> {
  const parts = rows.flatMap((row) => row.content.parts)
  return new Set(parts.flatMap((part) => {
    if (part.type !== 'tool-invocation') return []
    const { state, toolCallId } = part.toolInvocation
    return state === 'call' || state === 'approval-requested' ? [] : toolCallId
  }))
}

/** Removes the unsealed rows of a run. Returns the ids of the child threads that it deleted with them. */
function reject(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, error: JSONObject | undefined): string[] {
  const deleted = removeRowsFrom(tables, thread, run.sealSeq)
  run.staged = null
  finishTaken(tables, thread, run, 'rejected', typeof error?.message === 'string' ? error.message : null)
  return deleted
}

/** The code of an error that ended a run before a model read what it had taken last. */
function unreadReason(end: RunEnd): string | null {
  if (end.status !== 'failed' || end.error?.unread !== true) return null
  return typeof end.error.code === 'string' ? end.error.code : 'run_failed'
}

/** Ends the run. The transaction that finds no pending signal also releases the lease, so no send can fall between the two. */
function endRun(
  tables: ThreadTables, thread: ThreadRecord, run: RunRecord, end: RunEnd, encoded: EncodedCommit, owner: string,
): Pick<StepCommitted, 'ended' | 'more' | 'left' | 'wantsTitle'> {
  const now = tables.now()
  run.status = end.status
  thread.updatedAt = now
  if ('usage' in end) run.usage = encoded.usage
  if (end.status === 'suspended') return suspend(tables, thread, run, end, now)
  if (end.status !== 'rejected') finishTaken(tables, thread, run, 'consumed', unreadReason(end))
  if (run.staged !== null) applyStaged(tables, run)
  run.endedAt = now
  run.error = encoded.error
  tables.putRun(thread, run)
  if (end.status !== 'rejected' && end.scores) tables.scores.add(thread, run, end.scores, now)
  mergeTail(tables, thread)
  const titleUntil = end.status === 'finished' ? end.titleUntil : undefined
  const wantsTitle = titleUntil !== undefined && markUntitled(tables, thread, run.agentId, owner, titleUntil)

  const pending = pendingAfterRun(tables, thread, end.status !== 'rejected' && end.clearPending === true)
  const next = startingMail(runnable(pending, owner), null)
  const agentId = next?.mail[0]?.agentId
  if (next && agentId !== undefined) {
    transitionThread(thread, 'continue')
    reserveRun(thread, next.runId, agentId)
  } else releaseLease(tables, thread, pending.length > 0)
  tables.putThread(thread)
  const ended: ReturnType<typeof endRun> = { ended: true, more: next !== undefined }
  if (!next && pending.length > 0) ended.left = true
  if (wantsTitle) ended.wantsTitle = true
  return ended
}

function suspend(
  tables: ThreadTables, thread: ThreadRecord, run: RunRecord, end: Extract<RunEnd, { status: 'suspended' }>, now: number,
): Pick<StepCommitted, 'ended' | 'more'> {
  const asked = new Set((JSON.parse(run.suspended) as SuspendedCall[]).map(({ toolCallId }) => toolCallId))
  const waiting = end.calls.map((call): SuspendedCall => {
    return asked.has(call.toolCallId) || wasDecided(tables, thread, run, call.toolCallId) ? { ...call, again: true } : call
  })
  const calls = withChildDecisions(tables, thread, run, waiting)
  run.suspended = JSON.stringify(calls)
  run.suspendedAt = now
  if (calls.every((call) => call.decision)) {
    resumeRun(tables, thread, run)
    return { ended: true, more: true }
  }
  transitionThread(thread, 'suspend')
  thread.owner = null
  tables.putRun(thread, run)
  tables.putThread(thread)
  return { ended: true, more: false }
}

function notActive(runId: string, threadId: string): HeedError {
  return new HeedError('no_active_run', `Run ${runId} is not active on thread ${threadId}. Begin a run before committing steps of it.`, {
    details: { runId, threadId },
  })
}
