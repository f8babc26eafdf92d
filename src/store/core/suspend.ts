import { HeedError } from '../../base/errors.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import type { CallDecision, Decided, Scope, SuspendedCall, SuspendedEnd } from '../contract/threads.ts'
import { appendToRun, prepare, settleTail } from './append.ts'
import { leftOver, settle } from './commit.ts'
import { messageRow } from './decode.ts'
import { scopedThread } from './guard.ts'
import { firstDecision, keepDecision } from './decisions.ts'
import { lease, release } from './lease.ts'
import { goOn, resumeParents, suspendedRun } from './nesting.ts'
import type { RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { applyStaged } from './working-memory.ts'

export function decideCall(tables: ThreadTables, scope: Scope, decision: CallDecision, owner?: string): Decided {
  const thread = scopedThread(tables, scope)
  const first = firstDecision(tables, thread, decision)
  if (first) return first
  const run = suspendedRun(tables, thread, decision.runId)
  if (!run || (decision.step !== undefined && decision.step !== run.step)) throw notSuspended(scope.threadId, 'no run of it waits for a decision')

  const calls = JSON.parse(run.suspended) as SuspendedCall[]
  const call = openCall(calls, decision, scope.threadId)
  checkDecision(call, decision)
  call.decision = { approved: decision.approved, reason: decision.reason, resumeData: decision.resumeData }
  run.suspended = JSON.stringify(calls)
  const answer: Decided = { runId: run.runId, toolCallId: call.toolCallId, agentId: run.agentId, parents: [] }
  keepDecision(tables, thread, run, decision, answer)
  if (calls.every((other) => other.decision)) {
    if (owner !== undefined) answer.fence = lease(thread, 'resume', owner)
    goOn(tables, thread, run)
  } else {
    tables.putThread(thread)
    tables.putRun(thread, run)
  }
  answer.parents = resumeParents(tables, thread, { runId: run.runId, toolCallId: call.toolCallId })
  return answer
}

export function endSuspended(tables: ThreadTables, scope: Scope, runId: string, options: { clearPending?: boolean }): SuspendedEnd {
  const thread = scopedThread(tables, scope)
  const run = suspendedRun(tables, thread, runId)
  if (!run) return { ended: false, denied: [], more: false, epoch: thread.epoch, parents: [] }
  const denied = denyWaiting(tables, thread, run)
  run.status = 'aborted'
  run.endedAt = tables.now()
  applyStaged(tables, run)
  settle(tables, thread, run, 'consumed', null)
  tables.putRun(thread, run)
  settleTail(tables, thread)
  const pending = leftOver(tables, thread, options.clearPending === true)
  release(tables, thread, pending.length > 0)
  thread.epoch += 1
  thread.updatedAt = tables.now()
  tables.putThread(thread)
  return { ended: true, denied, more: pending.length > 0, epoch: thread.epoch, parents: resumeParents(tables, thread, { runId }) }
}

const notRun = 'The run was aborted while this call waited for approval. The call was not run.'

/** What waited for approval never began, and its model is to know that. What suspended itself had begun: nothing is known of it. */
function denyWaiting(tables: ThreadTables, thread: ThreadRecord, run: RunRecord): SuspendedEnd['denied'] {
  const waiting = (JSON.parse(run.suspended) as SuspendedCall[]).filter(({ kind, child }) => kind === 'approval' && !child).map(({ toolCallId }) => toolCallId)
  const caller = waiting.length > 0 ? tables.rowsFrom(thread, run.sealSeq).findLast(({ role }) => role === 'assistant') : undefined
  if (!caller) return []
  const { messageId, content: { parts } } = messageRow(thread, caller)
  const denied = parts.flatMap((part) => (part.type === 'tool-invocation' && waiting.includes(part.toolInvocation.toolCallId) ? deniedCall(part) : []))
  if (denied.length === 0) return []
  const row: MessageRow = { id: `${messageId}/${run.step}/${waiting[0]}`, messageId, role: 'tool', createdAt: new Date(tables.now()), content: { format: 2, parts: denied } }
  appendToRun(tables, thread, prepare([row], { runId: run.runId, step: run.step }))
  return denied.map(({ toolInvocation: { toolCallId, toolName } }) => ({ toolCallId, toolName, reason: notRun }))
}

// What the provider said of the call would be taken for what it said of the result.
function deniedCall({ providerMetadata: _, ...part }: ToolInvocationPart): ToolInvocationPart {
  return { ...part, toolInvocation: { ...part.toolInvocation, state: 'output-denied', approval: { approved: false, reason: notRun } } }
}

function openCall(calls: SuspendedCall[], { toolCallId }: CallDecision, threadId: string): SuspendedCall {
  const open = calls.filter((call) => !call.decision)
  const call = toolCallId === undefined ? open[0] : open.find((other) => other.toolCallId === toolCallId)
  if (!call) throw notSuspended(threadId, `no call ${toolCallId} waits for a decision`)
  if (toolCallId === undefined && open.length > 1) {
    const ids = open.map((other) => other.toolCallId)
    throw new HeedError('invalid_argument', `Several calls of thread ${threadId} wait for a decision. Name one of them as toolCallId: ${ids.join(', ')}.`, {
      details: { toolCallIds: ids },
    })
  }
  return call
}

/** Nothing runs because of an answer that wasn't one. */
function checkDecision({ kind, toolCallId, toolName }: SuspendedCall, { approved, resumeData }: CallDecision): void {
  if (approved !== undefined && typeof approved !== 'boolean') throw undecided(toolCallId, `'approved' must be true or false, not ${JSON.stringify(approved)}`)
  if (kind === 'approval' && approved === undefined) throw undecided(toolCallId, `${toolName} waits for approval: say approved: true or approved: false`)
  if (kind === 'suspend' && resumeData === undefined && approved !== false) throw undecided(toolCallId, `${toolName} waits for data: pass resumeData, or approved: false to decline`)
}

function undecided(toolCallId: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Call ${toolCallId} goes on waiting. ${why}.`, { details: { toolCallId, field: 'approved' } })
}

function notSuspended(threadId: string, why: string): HeedError {
  return new HeedError('run_not_suspended', `Nothing to decide on thread ${threadId}: ${why}. It may have been decided already.`, { details: { threadId } })
}
