import type { MessagePart } from '../../message/message.ts'
import { childThreadId, isWorkflowThreadId } from '../contract/thread-row.ts'
import type { CallDecision, ChildCall, DecidedChild, MadeDecision, SuspendedCall } from '../contract/threads.ts'
import { addDecision, madeAbout, recordMade } from './decision-records.ts'
import { removeLaneSignals } from './lanes.ts'
import { releaseLease, transitionThread } from './lease.ts'
import { cancelMail, pendingMail } from './mailbox.ts'
import { mergeTail } from './messages.ts'
import type { RowRecord, RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** All threads below a thread, the deepest first. Skips child threads of another resource. */
export function descendants(tables: ThreadTables, thread: ThreadRecord): ThreadRecord[] {
  let below = tables.children(thread)
  // One may have been added while the lock of this thread was awaited.
  if (tables.lock?.(below.map(({ id }) => id))) below = tables.children(thread)
  const children = below.filter(({ resourceId }) => resourceId === thread.resourceId)
  return children.flatMap((child) => [...descendants(tables, child), child])
}

/** Removes a thread and all threads below it. Returns their ids, its own last. */
export function removeWithDescendants(tables: ThreadTables, thread: ThreadRecord): string[] {
  const removed = [...descendants(tables, thread), thread]
  for (const one of removed) endThread(tables, one)
  return removed.map(({ id }) => id)
}

/** Removes a thread. No fence and no cursor of it fits a later thread with its id: the epochs of that one begin above its last. */
export function endThread(tables: ThreadTables, thread: ThreadRecord): void {
  tables.raiseEpochFloor(thread.epoch + 1)
  tables.removeThread(thread)
}

/** The suspended run of a thread. With `runId`, only if it is this run. */
export function suspendedRun(tables: ThreadTables, thread: ThreadRecord, runId?: string): RunRecord | undefined {
  if (thread.status !== 'suspended' || thread.runId === null || (runId !== undefined && runId !== thread.runId)) return undefined
  return tables.run(thread, thread.runId)
}

/**
 * Marks the calls as decided whose child call is suspended no longer, and keeps what was decided. A child thread that this store does not
 * have counts as suspended. The caller puts the thread.
 *
 * The parent checks the child when it suspends, and the child resumes the parent when it is decided (`resumeParents`), each in its own
 * transaction. So a parent never waits for a child that has continued.
 */
export function withChildDecisions(
  tables: ThreadTables, thread: ThreadRecord, run: RunRecord, calls: readonly SuspendedCall[],
): SuspendedCall[] {
  return calls.map((call) => {
    const child = call.child && tables.thread(call.child.threadId)
    if (!call.child || !child || suspendedCall(tables, call.child)) return call
    const { approvalId } = call.child
    const made = approvalId !== undefined && child.resourceId === thread.resourceId ? madeAbout(tables, child, approvalId) : undefined
    if (made) recordMade(tables, thread, run, call.toolCallId, made)
    if (made) addDecision(run, call, made)
    return { ...call, decision: {} }
  })
}

interface SuspendedChild {
  thread: ThreadRecord
  run: RunRecord
  calls: SuspendedCall[]
  call: SuspendedCall
}

/** The undecided call of a child thread, if this store has it. */
function suspendedCall(
  tables: ThreadTables, { threadId, runId, step, toolCallId, approvalId }: ChildCall,
): SuspendedChild | undefined {
  const thread = tables.thread(threadId)
  const run = thread && suspendedRun(tables, thread, runId)
  if (!thread || run?.step !== step) return undefined
  const calls = JSON.parse(run.suspended) as SuspendedCall[]
  const call = calls.find((other) => {
    return !other.decision && other.toolCallId === toolCallId && (approvalId === undefined || other.request?.id === approvalId)
  })
  return call && { thread, run, calls, call }
}

/**
 * Decides a call, which the caller stores. Where it stands for a call of a child thread, that call is decided in its place, and the calls
 * below that one: so of two decisions about one request, on different threads, one is made. A child thread that this store does not have
 * is decided by the run that called it. Returns the ids of the child threads whose runs continue.
 */
export function decideChild(
  tables: ThreadTables, thread: ThreadRecord, call: SuspendedCall, decision: CallDecision, made: MadeDecision,
): string[] {
  const below = call.child && suspendedCall(tables, call.child)
  if (!below || below.thread.resourceId !== thread.resourceId) {
    call.decision = { approved: decision.approved, reason: decision.reason, by: decision.by, resumeData: decision.resumeData }
    return []
  }
  call.decision = {}
  const { run, calls } = below
  const continued = decideChild(tables, below.thread, below.call, decision, made)
  run.suspended = JSON.stringify(calls)
  recordMade(tables, below.thread, run, below.call.toolCallId, made)
  addDecision(run, below.call, made)
  if (calls.every((other) => other.decision)) {
    resumeRun(tables, below.thread, run)
    return [below.thread.id, ...continued]
  }
  tables.putThread(below.thread)
  tables.putRun(below.thread, run)
  return continued
}

/** Continues a run whose calls are all decided. Without an owner, the thread is due for any process that runs its agent. */
export function resumeRun(tables: ThreadTables, thread: ThreadRecord, run: RunRecord): void {
  run.status = 'running'
  run.attempts = 0
  if (thread.status === 'suspended') {
    transitionThread(thread, 'resume')
    thread.dueAt = tables.now()
  }
  run.epoch = thread.epoch
  tables.putThread(thread)
  tables.putRun(thread, run)
}

/**
 * Marks the calls of parent threads as decided that stand for this call, or without `toolCallId` for any call of the run. `made`: what was
 * decided about it. Returns the ids of the threads whose runs continue.
 */
export function resumeParents(
  tables: ThreadTables, thread: ThreadRecord, child: { runId: string; toolCallId?: string }, made?: MadeDecision,
): string[] {
  const parent = thread.parentId === null ? undefined : tables.thread(thread.parentId)
  if (!parent || parent.resourceId !== thread.resourceId) return []
  if (isWorkflowThreadId(parent.id)) return tellWorkflow(tables, parent, { threadId: thread.id, ...child, ...approvalOf(made) })
  const run = suspendedRun(tables, parent)
  const calls = run ? (JSON.parse(run.suspended) as SuspendedCall[]) : []
  const call = calls.find((other) => !other.decision && standsFor(other.child, thread.id, child))
  if (!run || !call) return []
  call.decision = {}
  run.suspended = JSON.stringify(calls)
  if (made) recordMade(tables, parent, run, call.toolCallId, made)
  if (made) addDecision(run, call, made)
  const above = { runId: run.runId, toolCallId: call.toolCallId }
  if (calls.some((other) => !other.decision)) {
    tables.putThread(parent)
    tables.putRun(parent, run)
    return resumeParents(tables, parent, above, made)
  }
  resumeRun(tables, parent, run)
  return [parent.id, ...resumeParents(tables, parent, above, made)]
}

function approvalOf(made: MadeDecision | undefined): { approvalId?: string } {
  return made?.approvalId === undefined ? {} : { approvalId: made.approvalId }
}

/**
 * Sends the run of a workflow that a call of one of its agents was decided, or without `toolCallId` that the agent's run has ended. It is
 * a signal like any other: a run that works takes it with its next commit, and one that waits goes on, in whichever process.
 */
function tellWorkflow(tables: ThreadTables, thread: ThreadRecord, decided: DecidedChild): string[] {
  const { parentId: agentId } = thread
  if (agentId === null) return []
  const now = tables.now()
  const route = thread.status === 'idle' ? 'wake' : 'interrupt'
  const options = JSON.stringify({ workflow: { decided } })
  const mail = pendingMail({
    ord: thread.nextOrd, id: `decided:${tables.newId()}`, agentId, route, kind: 'enter', startRunId: tables.newId(), options, boundTo: null,
    acceptedAt: now,
  })
  thread.nextOrd += 1
  thread.updatedAt = now
  mail.runId = route === 'wake' ? mail.startRunId : thread.runId
  if (route === 'wake') {
    thread.epoch += 1
    thread.dueAt ??= now
  }
  tables.addMail(thread, mail)
  tables.putThread(thread)
  return [thread.id]
}

function standsFor(call: ChildCall | undefined, threadId: string, { runId, toolCallId }: { runId: string; toolCallId?: string }): boolean {
  return call?.threadId === threadId && call.runId === runId && (toolCallId === undefined || call.toolCallId === toolCallId)
}

/**
 * Removes the rows of a thread from `seq` on, and what their tool calls caused on child threads. Returns the ids of the threads that it
 * deleted.
 */
export function removeRowsFrom(tables: ThreadTables, thread: ThreadRecord, seq: number): string[] {
  const hasChildren = tables.children(thread).length > 0
  const rows = hasChildren || tables.lanes(thread).length > 0 ? tables.rowsFrom(thread, seq) : []
  const deleted = hasChildren ? deleteChildrenFrom(tables, thread, rows) : []
  removeLaneSignals(tables, thread, rows.map(({ id }) => id))
  tables.removeRowsFrom(thread, seq)
  const last = tables.lastRow(thread)
  thread.ordinal = last?.ordinal ?? 0
  thread.turn = last?.turn ?? 0
  return deleted
}

/** Deletes the runs that the tool calls of these rows started on child threads, and the child threads that have no other runs. */
function deleteChildrenFrom(tables: ThreadTables, parent: ThreadRecord, rows: readonly RowRecord[]): string[] {
  return rows.flatMap((row) => callsOf(row).flatMap(({ toolCallId, runId }) => deleteChildRun(tables, parent, toolCallId, runId)))
}

/** The tool calls of a row, each with the id that its run on a child thread has. */
function callsOf({ role, runId, step, content }: RowRecord): Array<{ toolCallId: string; runId: string }> {
  if (role !== 'assistant' || !content.includes('"tool-invocation"')) return []
  const { parts } = JSON.parse(content) as { parts: MessagePart[] }
  return parts.flatMap((part) => {
    if (part.type !== 'tool-invocation') return []
    const { toolCallId } = part.toolInvocation
    return { toolCallId, runId: `${runId}/${step}/${toolCallId}` }
  })
}

/** A process that still runs the child is rejected at its next commit: the thread is deleted, or its epoch has grown. */
function deleteChildRun(tables: ThreadTables, parent: ThreadRecord, toolCallId: string, runId: string): string[] {
  const thread = tables.thread(childThreadId(parent.id, toolCallId))
  if (!thread || thread.parentId !== parent.id || thread.resourceId !== parent.resourceId) return []
  const rows = tables.rowsFrom(thread, 0)
  const own = rows.findIndex((row) => row.runId === runId)
  // Some providers restart the numbering of calls in each step: then earlier calls have runs on the same thread.
  if (rows.length > 0 && own !== 0) return rejectRun(tables, thread, runId, rows[own]?.seq)
  return removeWithDescendants(tables, thread)
}

function rejectRun(tables: ThreadTables, thread: ThreadRecord, runId: string, seq: number | undefined): string[] {
  const mail = tables.mail(thread, runId)
  if (mail?.state === 'pending') cancelMail(tables, thread, mail, 'The run that made the call was rejected.')
  const deleted = seq === undefined ? [] : removeRowsFrom(tables, thread, seq)
  const run = tables.run(thread, runId)
  if (run) tables.putRun(thread, { ...run, status: 'rejected', staged: null, endedAt: run.endedAt ?? tables.now(), taken: null })
  if (thread.runId === runId) {
    tables.finishTaken(thread, run?.taken ?? null, 'rejected', null)
    mergeTail(tables, thread)
    thread.epoch += 1
    releaseLease(tables, thread, tables.pending(thread).length > 0)
  }
  tables.putThread(thread)
  return deleted
}
