import { HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { CallDecision, Decided, RunRow, Scope } from '../../store/contract/threads.ts'
import { errorRowId } from '../runtime/run-rows.ts'
import type { Runnable } from '../runtime/runnable.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** An answer to a call that waits, addressed by its thread or by its run. */
export interface Decision {
  /** Under an id it is one decision, however often it is made. */
  id?: string
  threadId?: string
  resourceId?: string
  runId?: string
  step?: number
  toolCallId?: string
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

/** Records the decision. The run goes on here when nothing else is waited for and its agent is known here. */
export async function decide(runtime: ThreadRuntime, agent: Runnable, decision: Decision): Promise<Decided> {
  runtime.register(agent)
  await runtime.open()
  const { threadId, resourceId, ...answer } = decision
  const scope = threadId === undefined ? await scopeOf(runtime, decision) : { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  const thread = await runtime.store.getThread(scope)
  const owner = thread?.agentId !== undefined && runtime.knows(thread.agentId) ? runtime.owner : undefined
  let asked = false
  const decided = await runtime.answered(scope.threadId, async (): Promise<Decided> => {
    try {
      return await runtime.store.decide(scope, answer satisfies CallDecision, owner)
    } catch (error) {
      // The first answer was lost and the decision was not.
      if (asked && isHeedError(error) && error.code === 'run_not_suspended' && thread?.runId !== undefined) {
        return { runId: thread.runId, toolCallId: decision.toolCallId ?? '', agentId: agent.id, parents: [] }
      }
      asked = true
      throw error
    }
  })
  if (decided.fence) runtime.run(decided.fence, thread?.resourceId)
  else if (owner === undefined) runtime.peers.mail(scope.threadId)
  for (const parent of decided.parents) if (!(await runtime.wake(parent))) runtime.peers.mail(parent)
  return decided
}

async function scopeOf(runtime: ThreadRuntime, { runId, resourceId }: Decision): Promise<Scope> {
  const run = runId === undefined ? null : await runtime.store.findRun(runId)
  if (!run || (resourceId !== undefined && run.resourceId !== resourceId)) {
    throw new HeedError('run_not_suspended', `No suspended run '${runId}' was found. It may have been decided already.`, { details: { runId } })
  }
  return { threadId: run.threadId, resourceId: run.resourceId }
}

/** New input in place of an answer: everything that a suspended thread waits for is declined. What was decided first stays decided. */
export async function declineAll(runtime: ThreadRuntime, agent: Runnable, scope: Scope): Promise<void> {
  const run = await suspendedRun(runtime, scope)
  if (!run) return
  for (const call of run.suspended) {
    if (call.decision) continue
    try {
      await decide(runtime, agent, { ...scope, runId: run.runId, toolCallId: call.toolCallId, approved: false, reason: 'New input came instead of an answer.' })
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
 * Takes up a run that was parked, the newest one of the thread unless it is named. It goes on from its last finished step; the
 * message that said it was parked goes.
 */
export async function retryParked(runtime: ThreadRuntime, agent: Runnable, scope: Scope, runId?: string): Promise<string> {
  runtime.register(agent)
  await runtime.open()
  const thread = await runtime.store.getThread(scope)
  const run = runId === undefined ? (await runtime.store.listRuns({ threadId: scope.threadId, status: ['parked'], limit: 1 }))[0] : await runtime.store.getRun(scope, runId)
  if (!thread || !run) {
    throw new HeedError('run_not_parked', `No parked run was found on thread ${scope.threadId}.`, { details: { ...scope, ...(runId === undefined ? {} : { runId }) } })
  }
  const owner = runtime.knows(run.agentId) ? { owner: runtime.owner } : {}
  const { fence } = await runtime.store.retryParked(scope, run.runId, { ...owner, removed: [errorRowId(run.runId)] })
  if (fence) runtime.run(fence, thread.resourceId)
  return run.runId
}
