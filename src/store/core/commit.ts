import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import type { MessageRow } from '../../message/row.ts'
import { entering } from '../../machine.ts'
import type { Fence, MailboxRow, RunEnd, StepCommit, StepCommitted } from '../contract/threads.ts'
import { takeBackFrom } from './child-threads.ts'
import { appendToRun, prepare, settleTail, type Prepared } from './append.ts'
import { jsonOrNull } from './decode.ts'
import { fencedThread } from './guard.ts'
import { advanceLane, forgetLaneSignals, stated } from './lanes.ts'
import { move, promise, release } from './lease.ts'
import { goOn, withChildren } from './nesting.ts'
import { forgetWords, stillQuoting } from './quotes.ts'
import { placesOf } from './places.ts'
import type { MailRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { takeMail } from './take.ts'
import { markUntitled } from './titles.ts'
import { applyStaged } from './working-memory.ts'
import { cancelMail, runnable, startingRows } from './waiting.ts'

export function commitStep(tables: ThreadTables, fence: Fence, commit: StepCommit): StepCommitted {
  const thread = fencedThread(tables, fence)
  const run = thread.begun === 1 && thread.runId === commit.runId ? tables.run(thread, commit.runId) : undefined
  if (!run || run.status !== 'running') throw notActive(commit.runId, fence.threadId)
  const { end } = commit
  const words = wordsOf(commit)
  if (end?.status === 'rejected') {
    remove(tables, thread, commit.removed)
    const gone = reject(tables, thread, run, end.error)
    return { rows: [], taken: [], ...finish(tables, thread, run, end, words, fence.owner), ...(gone.length > 0 && { gone }) }
  }

  const revised = prepare(commit.revised ?? [])
  const lane = commit.lane && !tables.row(thread, commit.lane.rowId) ? commit.lane : undefined
  const kept = stillQuoting(tables, thread, commit.rows, commit.quoted)
  const appended = prepare(lane ? stated(tables, thread, kept, lane) : kept, commit)
  for (const row of revised) revise(tables, thread, run, row)
  remove(tables, thread, commit.removed)
  const rows = appendToRun(tables, thread, appended)
  if (lane) advanceLane(tables, thread, lane, lane.rowId)
  const taken = commit.drain === true ? drain(tables, thread, run, commit.step + 1, fence.owner) : []
  const ends = end !== undefined && taken.length === 0
  progress(run, commit, words, ends)
  if (ends) return Object.assign(finish(tables, thread, run, end, words, fence.owner), { rows, taken })

  tables.putRun(thread, run)
  tables.putThread(thread)
  const waits = commit.drain === 'look' && waiting(tables, thread, run, fence.owner).length > 0
  return { rows, taken, ended: false, more: false, ...(waits && { waits }) }
}

/** What is stored of a commit besides its rows. Making it can fail, on what is no JSON; so it is made before the first write. */
interface Words {
  usage: string | null
  error: string | null
  lost: string | null
}

function wordsOf({ end, lost, started }: StepCommit): Words {
  if (end?.status === 'suspended') JSON.stringify(end.calls)
  if (started) JSON.stringify(started)
  return {
    usage: end && 'usage' in end ? jsonOrNull(end.usage) : null,
    error: end && 'error' in end ? jsonOrNull(end.error) : null,
    lost: jsonOrNull(lost),
  }
}

function remove(tables: ThreadTables, thread: ThreadRecord, ids: readonly string[] = []): void {
  for (const id of ids) if (!tables.removeMessage(thread, id)) tables.removeRow(thread, id)
  forgetLaneSignals(tables, thread, ids)
}

function revise(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, { stored }: Prepared): void {
  const there = tables.row(thread, stored.id)
  if (!there) return
  const revised = { ...there, ...stored, runId: there.runId, step: there.step, decoded: undefined }
  // What is not sealed nobody could quote.
  if (there.seq < run.sealSeq) forgetWords(tables, thread, there.messageId, [there], [revised])
  tables.reviseRow(thread, revised)
}

function waiting(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, owner: string): MailRecord[] {
  return entering(runnable(tables.pending(thread), owner), run.agentId)
}

/** New input seals what came before it: a guardrail that refuses later takes back only what followed. */
function drain(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, step: number, owner: string): MailboxRow[] {
  const enters = waiting(tables, thread, run, owner)
  if (enters.length === 0) return []
  settle(tables, thread, run, 'consumed', null)
  run.sealSeq = thread.nextSeq
  run.taken = placesOf(enters)
  applyStaged(tables, run)
  return takeMail(tables, thread, enters, { runId: run.runId, step })
}

/** The run has done with what it took. It is put by the caller. */
export function settle(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, state: 'consumed' | 'rejected', reason: string | null): void {
  tables.settleTaken(thread, run.taken, state, reason)
  run.taken = null
}

function progress(run: RunRecord, commit: StepCommit, words: Words, ends: boolean): void {
  if (words.lost !== null) run.lost = words.lost
  // A parked run may be taken up again: the step that it stopped in is still to do.
  const over = commit.drain !== undefined || (ends && commit.end?.status !== 'suspended' && commit.end?.status !== 'parked')
  run.step = over ? commit.step + 1 : commit.step
  if (over) {
    run.suspended = '[]'
    // It gets on: being begun again from here is not being begun in vain.
    if (!ends) run.attempts = 1
  }
  if (run.started === '[]' && !commit.started?.length) return
  const settled = settledCalls(commit.rows)
  const started = new Set([...(JSON.parse(run.started) as string[]), ...(commit.started ?? [])])
  run.started = JSON.stringify([...started].filter((id) => !settled.has(id)))
}

/** The calls whose outcome is in these rows. */
function settledCalls(rows: readonly MessageRow[]): Set<string> {
  const parts = rows.flatMap((row) => row.content.parts)
  return new Set(parts.flatMap((part) => {
    if (part.type !== 'tool-invocation') return []
    const { state, toolCallId } = part.toolInvocation
    return state === 'call' || state === 'approval-requested' ? [] : toolCallId
  }))
}

/** Answers the threads that went with it. */
function reject(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, error: JSONObject | undefined): string[] {
  const gone = takeBackFrom(tables, thread, run.sealSeq)
  run.staged = null
  settle(tables, thread, run, 'rejected', typeof error?.message === 'string' ? error.message : null)
  return gone
}

/** Ends the run. The lease goes in the same transaction that finds nothing waiting: no send can fall between the two. */
function finish(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, end: RunEnd, words: Words, owner: string): Pick<StepCommitted, 'ended' | 'more' | 'left' | 'wantsTitle'> {
  const now = tables.now()
  run.status = end.status
  thread.updatedAt = now
  if ('usage' in end) run.usage = words.usage
  if (end.status === 'suspended') {
    const calls = withChildren(tables, end.calls)
    run.suspended = JSON.stringify(calls)
    run.suspendedAt = now
    if (calls.every((call) => call.decision)) {
      goOn(tables, thread, run)
      return { ended: true, more: true }
    }
    move(thread, 'suspend')
    thread.owner = null
    tables.putRun(thread, run)
    tables.putThread(thread)
    return { ended: true, more: false }
  }
  if (end.status !== 'rejected') settle(tables, thread, run, 'consumed', null)
  applyStaged(tables, run)
  run.endedAt = now
  run.error = words.error
  tables.putRun(thread, run)
  settleTail(tables, thread)
  const wantsTitle = end.status === 'finished' && end.titleUntil !== undefined && markUntitled(tables, thread, run.agentId, owner, end.titleUntil)

  const pending = leftOver(tables, thread, end.status !== 'rejected' && end.clearPending === true)
  const next = startingRows(runnable(pending, owner), null)
  const agentId = next?.rows[0]?.agentId
  if (next && agentId !== undefined) {
    move(thread, 'continue')
    promise(thread, next.runId, agentId)
  } else release(tables, thread, pending.length > 0)
  tables.putThread(thread)
  const finished: ReturnType<typeof finish> = { ended: true, more: next !== undefined }
  if (!next && pending.length > 0) finished.left = true
  if (wantsTitle) finished.wantsTitle = true
  return finished
}

/** What waits after a run, unless its end took that along. */
export function leftOver(tables: ThreadTables, thread: ThreadRecord, clear: boolean): MailRecord[] {
  const pending = tables.pending(thread)
  if (!clear) return pending
  for (const mail of pending) cancelMail(tables, thread, mail, 'The run that it waited for was ended together with what waited.')
  return []
}

function notActive(runId: string, threadId: string): HeedError {
  return new HeedError('no_active_run', `Run ${runId} is not active on thread ${threadId}. Begin a run before committing steps of it.`, {
    details: { runId, threadId },
  })
}
