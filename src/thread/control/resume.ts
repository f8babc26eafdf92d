import { HeedError, isHeedError } from '../../base/errors.ts'
import { isWorkflowThreadId } from '../../store/contract/thread-row.ts'
import type { CallDecision, Decided, RunRow, Scope } from '../../store/contract/threads.ts'
import { errorRowId } from '../runtime/run-rows.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** A decision about a suspended call, addressed by its thread or by its run. */
export interface Decision extends CallDecision {
  threadId?: string
  resourceId?: string
}

/** Stores the decision. The run continues here when no other call is undecided and its agent is registered here. */
export async function decide(runtime: ThreadRuntime, agent: Runnable, decision: Decision): Promise<Decided> {
  runtime.register(agent)
  await runtime.open()
  const { threadId, resourceId, ...answer } = decision
  const scope =
    threadId === undefined ? await scopeOf(runtime, decision) : { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  const thread = await runtime.store.getThread(scope)
  const owner = thread?.agentId !== undefined && runtime.hasAgent(thread.agentId) ? runtime.owner : undefined
  // The id tells a decision whose answer was lost from the decision of another caller.
  const identified: CallDecision = { ...answer, id: decision.id ?? runtime.newId() }
  const decided = await runtime.retryOnce(scope.threadId, () => runtime.store.decide(scope, identified, owner))
  if (decided.fence) runtime.run(decided.fence, thread?.resourceId)
  else if (owner === undefined) runtime.peers.requestRunner(scope.threadId)
  // A run that continues here follows its children from their first chunk, and claims them then.
  const due = decided.fence ? decided.parents : [...decided.parents, ...decided.children]
  for (const threadId of due) await continueThread(runtime, threadId)
  return decided
}

/** Runs a thread that goes on by a decision. A run of a workflow that works here takes the decision at once. */
export async function continueThread(runtime: ThreadRuntime, threadId: string): Promise<void> {
  if (isWorkflowThreadId(threadId)) await runtime.hostOf(threadId)?.applyPendingInterrupts()
  if (!(await runtime.wake(threadId))) runtime.peers.requestRunner(threadId)
}

async function scopeOf(runtime: ThreadRuntime, { runId, resourceId }: Decision): Promise<Scope> {
  const run = runId === undefined ? null : await runtime.store.findRun(runId)
  if (!run || (resourceId !== undefined && run.resourceId !== resourceId)) {
    throw new HeedError('run_not_suspended', `No suspended run '${runId}' was found. It may have been decided already.`, {
      details: { runId },
    })
  }
  return { threadId: run.threadId, resourceId: run.resourceId }
}

/** New input instead of a decision: all undecided calls of a suspended thread are declined. Decided calls stay decided. */
export async function declineAll(runtime: ThreadRuntime, agent: Runnable, scope: Scope): Promise<void> {
  const run = await suspendedRun(runtime, scope)
  if (!run) return
  for (const call of run.suspended) {
    if (call.decision) continue
    try {
      await decide(runtime, agent, {
        ...scope,
        runId: run.runId,
        toolCallId: call.toolCallId,
        ...(call.request ? { approvalId: call.request.id } : {}),
        approved: false,
        reason: 'New input arrived instead of a decision.',
      })
    } catch (error) {
      if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
    }
  }
}

export async function suspendedRun(runtime: ThreadRuntime, scope: Scope): Promise<RunRow | null> {
  const thread = await runtime.store.getThread(scope)
  return thread?.status === 'suspended' && thread.runId !== undefined ? runtime.store.getRun(scope, thread.runId) : null
}

/**
 * Continues a parked run: this one, or the newest of the thread. It continues after its last committed step; the message about the parking
 * is removed.
 */
export async function retryParked(runtime: ThreadRuntime, agent: Runnable, scope: Scope, runId?: string): Promise<string> {
  runtime.register(agent)
  await runtime.open()
  const thread = await runtime.store.getThread(scope)
  const run =
    runId === undefined
      ? (await runtime.store.listRuns({ threadId: scope.threadId, status: ['parked'], limit: 1 }))[0]
      : await runtime.store.getRun(scope, runId)
  if (!thread || !run) {
    throw new HeedError('run_not_parked', `No parked run was found on thread ${scope.threadId}.`, {
      details: { ...scope, ...(runId === undefined ? {} : { runId }) },
    })
  }
  const owner = runtime.hasAgent(run.agentId) ? { owner: runtime.owner } : {}
  const { fence } = await runtime.store.retryParked(scope, run.runId, { ...owner, removed: [errorRowId(run.runId)] })
  if (fence) runtime.run(fence, thread.resourceId)
  return run.runId
}
