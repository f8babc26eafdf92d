import { HeedError } from '../../base/errors.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { checkDecision, findUndecided } from '../contract/decisions.ts'
import { threadsAbove } from '../contract/thread-row.ts'
import type { CallDecision, Decided, MadeDecision, Scope, SuspendedCall, SuspendedEnd } from '../contract/threads.ts'
import { decideChild, resumeParents, resumeRun, suspendedRun } from './child-threads.ts'
import { addDecision, earlierDecision, earlierMade, madeDecision, recordDecision } from './decision-records.ts'
import { grantLease, releaseLease, scopedThread } from './lease.ts'
import { finishTaken, pendingAfterRun } from './mailbox.ts'
import { appendToRun, mergeTail } from './messages.ts'
import { messageRow, prepareRows, type RunRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { applyStaged } from './working-memory.ts'

export function decideCall(tables: ThreadTables, scope: Scope, decision: CallDecision, owner?: string): Decided {
  lockNested(tables, scope)
  const thread = scopedThread(tables, scope)
  const earlier = earlierDecision(tables, thread, decision)
  if (earlier) return earlier
  const run = suspendedRun(tables, thread, decision.runId)
  if (!run || (decision.step !== undefined && decision.step !== run.step)) {
    throw notSuspended(tables, thread, decision, 'it has no suspended run that the decision matches')
  }

  const calls = JSON.parse(run.suspended) as SuspendedCall[]
  const call = undecidedCall(tables, thread, calls, decision)
  checkDecision(call, decision)
  const made = madeDecision(tables, call, decision)
  const children = decideChild(tables, thread, call, decision, made)
  run.suspended = JSON.stringify(calls)
  const decided: Decided = { runId: run.runId, toolCallId: call.toolCallId, agentId: run.agentId, made, parents: [], children }
  recordDecision(tables, thread, run, decision, decided)
  addDecision(run, call, made)
  if (calls.every((other) => other.decision)) {
    if (owner !== undefined && !tables.processes.isResting) decided.fence = grantLease(thread, 'resume', owner)
    resumeRun(tables, thread, run)
  } else {
    tables.putThread(thread)
    tables.putRun(thread, run)
  }
  decided.parents = resumeParents(tables, thread, { runId: run.runId, toolCallId: call.toolCallId }, made)
  return decided
}

/** Locks a thread with those above and below it: a decision continues the runs of all that wait for it. */
function lockNested(tables: ThreadTables, { threadId }: Scope): void {
  tables.lock?.([threadId, ...threadsAbove(threadId)], { below: true })
}

export function endSuspended(tables: ThreadTables, scope: Scope, runId: string, options: { clearPending?: boolean }): SuspendedEnd {
  lockNested(tables, scope)
  const thread = scopedThread(tables, scope)
  const run = suspendedRun(tables, thread, runId)
  if (!run) return { ended: false, denied: [], more: false, epoch: thread.epoch, parents: [] }
  const end = endOne(tables, thread, run, options)
  const children = endChildren(tables, thread, run, options)
  return { ended: true, ...end, ...(children.length > 0 && { children }), parents: resumeParents(tables, thread, { runId }) }
}

function endOne(
  tables: ThreadTables, thread: ThreadRecord, run: RunRecord, options: { clearPending?: boolean },
): Pick<SuspendedEnd, 'denied' | 'more' | 'epoch'> {
  const denied = denyApprovals(tables, thread, run)
  run.status = 'aborted'
  run.endedAt = tables.now()
  if (run.staged !== null) applyStaged(tables, run)
  finishTaken(tables, thread, run, 'consumed', null)
  tables.putRun(thread, run)
  mergeTail(tables, thread)
  const pending = pendingAfterRun(tables, thread, options.clearPending === true)
  releaseLease(tables, thread, pending.length > 0)
  thread.epoch += 1
  thread.updatedAt = tables.now()
  tables.putThread(thread)
  return { denied, more: pending.length > 0, epoch: thread.epoch }
}

/** Ends the suspended runs that calls of a run stand for: no abort reaches them later if the process ends after this transaction. */
function endChildren(
  tables: ThreadTables, parent: ThreadRecord, { suspended }: RunRecord, options: { clearPending?: boolean },
): NonNullable<SuspendedEnd['children']> {
  return (JSON.parse(suspended) as SuspendedCall[]).flatMap(({ child }) => {
    const thread = child && tables.thread(child.threadId)
    const run = thread?.resourceId === parent.resourceId ? suspendedRun(tables, thread, child?.runId) : undefined
    if (!thread || !run) return []
    const end = { threadId: thread.id, runId: run.runId, ...endOne(tables, thread, run, options) }
    return [end, ...endChildren(tables, thread, run, options)]
  })
}

const notRun = 'The run was aborted while this call waited for approval. The call was not run.'

/**
 * Appends a denied result for each call that waited for approval, so that the model learns that it never started. A call that suspended
 * itself had started; its outcome is unknown.
 */
function denyApprovals(tables: ThreadTables, thread: ThreadRecord, run: RunRecord): SuspendedEnd['denied'] {
  const calls = (JSON.parse(run.suspended) as SuspendedCall[]).filter(({ kind, child }) => kind === 'approval' && !child)
  const waiting = calls.map(({ toolCallId }) => toolCallId)
  const caller = waiting.length > 0 ? tables.rowsFrom(thread, run.sealSeq).findLast(({ role }) => role === 'assistant') : undefined
  if (!caller) return []
  const { messageId, content: { parts } } = messageRow(thread, caller)
  const denied = parts.flatMap((part) => (
    part.type === 'tool-invocation' && waiting.includes(part.toolInvocation.toolCallId) ? deniedCall(part) : []
  ))
  if (denied.length === 0) return []
  const row: MessageRow = {
    id: `${messageId}/${run.step}/${waiting[0]}`,
    messageId,
    role: 'tool',
    createdAt: new Date(tables.now()),
    content: { format: 2, parts: denied },
  }
  appendToRun(tables, thread, prepareRows([row], { runId: run.runId, step: run.step }))
  return denied.map(({ toolInvocation: { toolCallId, toolName } }) => ({ toolCallId, toolName, reason: notRun }))
}

/** Without the provider's metadata of the call, which would be read as metadata of the result. */
function deniedCall({ providerMetadata: _, ...part }: ToolInvocationPart): ToolInvocationPart {
  return { ...part, toolInvocation: { ...part.toolInvocation, state: 'output-denied', approval: { approved: false, reason: notRun } } }
}

function undecidedCall(
  tables: ThreadTables, thread: ThreadRecord, calls: readonly SuspendedCall[], decision: CallDecision,
): SuspendedCall {
  const call = findUndecided(calls, decision, `thread ${thread.id}`)
  if (call) return call
  throw notSuspended(tables, thread, decision, `no call ${decision.approvalId ?? decision.toolCallId} waits for a decision`)
}

/** `details.decided`: what was decided about the request or the call, where that is known. */
function notSuspended(tables: ThreadTables, thread: ThreadRecord, decision: CallDecision, why: string): HeedError {
  const made = earlierMade(tables, thread, decision)
  return new HeedError('run_not_suspended', `Nothing to decide on thread ${thread.id}: ${why}. ${describeMade(made)}`, {
    details: { threadId: thread.id, ...(made ? { decided: { ...made, at: new Date(made.at).toISOString() } } : {}) },
  })
}

function describeMade(made: MadeDecision | undefined): string {
  if (!made) return 'It may have been decided already.'
  const what = made.approved === undefined ? 'resumed with data' : made.approved ? 'approved' : 'declined'
  return `It was ${what}${made.by === undefined ? '' : ` by ${made.by}`} at ${new Date(made.at).toISOString()}.`
}
