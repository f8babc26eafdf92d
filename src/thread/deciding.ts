import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import type { CallDecision, Decided, RunRow, Scope } from '../store/contract.ts'
import type { Runnable } from './runnable.ts'
import type { ThreadRuntime } from './runtime.ts'

/** An answer to a call that waits, addressed by its thread or by its run. */
export interface Decision {
  threadId?: string
  resourceId?: string
  runId?: string
  toolCallId?: string
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

/** Records the decision. The run goes on here when nothing else is waited for. */
export async function decide(runtime: ThreadRuntime, agent: Runnable, decision: Decision): Promise<Decided> {
  runtime.register(agent)
  await runtime.open()
  const { threadId, resourceId, ...answer } = decision
  const scope = threadId === undefined ? await scopeOf(runtime, decision) : { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  const decided = await runtime.store.decide(scope, answer satisfies CallDecision, runtime.owner)
  if (decided.fence) runtime.run(decided.fence)
  return decided
}

async function scopeOf(runtime: ThreadRuntime, { runId, resourceId }: Decision): Promise<Scope> {
  const run = runId === undefined ? null : await runtime.store.findRun(runId)
  if (!run || (resourceId !== undefined && run.resourceId !== resourceId)) {
    throw new HeedError('run_not_suspended', `No suspended run '${runId}' was found. It may have been decided already.`, { details: { runId } })
  }
  return { threadId: run.threadId, resourceId: run.resourceId }
}

/** Declines everything that a suspended thread waits for. */
export async function declineAll(runtime: ThreadRuntime, agent: Runnable, scope: Scope, reason: string): Promise<void> {
  const run = await suspendedRun(runtime, scope)
  for (const call of run?.suspended ?? []) {
    if (!call.decision) await decide(runtime, agent, { ...scope, toolCallId: call.toolCallId, approved: false, reason })
  }
}

export async function suspendedRun(runtime: ThreadRuntime, scope: Scope): Promise<RunRow | null> {
  const thread = await runtime.store.getThread(scope)
  return thread?.status === 'suspended' && thread.runId !== undefined ? runtime.store.getRun(scope, thread.runId) : null
}
