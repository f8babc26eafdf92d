import { HeedError } from '../../base/errors.ts'
import { everyResource } from '../../heed/policies.ts'
import { findUndecided } from '../../store/contract/decisions.ts'
import type { SuspendedCall } from '../../store/contract/threads.ts'
import { findCallerRun, unlessForeign } from '../request/access.ts'
import type { Call, Route } from '../route.ts'
import { policyQuestion, type PolicyQuestion } from './policy.ts'
import { requireResource } from './principal.ts'

type DecisionTarget = Pick<PolicyQuestion, 'threadId' | 'runId' | 'resourceId' | 'toolCallId' | 'approvalId'>

/** The id of no request for a decision. */
export const noRequest = 'none'

/** The calls without a decision that an approval may be about, and their resource. */
export async function undecidedCalls(call: Call, target: DecisionTarget): Promise<{ calls: SuspendedCall[]; resourceId: string }> {
  const { toolCallId, approvalId } = target
  const { calls, resourceId } = await suspendedCalls(call, target)
  const named = calls.filter(({ decision, request, ...one }) => {
    if (decision || (approvalId !== undefined && request?.id !== approvalId)) return false
    return toolCallId === undefined || one.toolCallId === toolCallId
  })
  return { calls: named, resourceId }
}

/** The id of the request that an approval decides. The route must decide no other: the thread may suspend for another call meanwhile. */
export function requestToDecide(named: readonly SuspendedCall[], { body }: Pick<Call, 'body'>): string {
  return findUndecided(named, body, 'the run')?.request?.id ?? (body.approvalId as string | undefined) ?? noRequest
}

/**
 * Rejects an approval by a sender unless the author of every agent between the thread and the call lets senders approve: an agent may be
 * called by one whose author says so. Returns the only request that it may decide.
 */
export async function checkSenderApproval(route: Route, call: Call): Promise<string> {
  const target = policyQuestion(route, call)
  const { calls } = target ? await undecidedCalls(call, target) : { calls: [] }
  for (const { request } of calls) for (const agentId of request?.path.slice(0, -1) ?? []) {
    if (agentId === call.agent.id || call.heed.findAgent(agentId)?.remote?.approvals === 'sender') continue
    const message = `You may not approve calls of agent '${agentId}': it needs the scope 'approve'.`
    throw new HeedError('forbidden', message, { details: { scope: 'approve', agentId } })
  }
  return requestToDecide(calls, call)
}

/** The calls of the run that a decision addresses, decided ones too, and its resource. */
async function suspendedCalls(call: Call, question: DecisionTarget): Promise<{ calls: readonly SuspendedCall[]; resourceId: string }> {
  const { agent, principal, runCallers } = call
  const { threadId, runId, resourceId: named } = question
  const runtime = agent.threads()
  if (threadId !== undefined) {
    const scope = { threadId, resourceId: requireResource(principal, named) }
    await runtime.open()
    const thread = await unlessForeign(call, runtime.store.getThread(scope), () => null)
    const run = thread?.runId === undefined ? undefined : await runtime.store.getRun(scope, thread.runId)
    return { calls: run?.suspended ?? [], resourceId: scope.resourceId }
  }
  const id = runId ?? ''
  const kept = runCallers.mayDecide(id, principal) ? agent.site().ephemeralRuns.suspended(id) : undefined
  if (kept) return { calls: kept.calls, resourceId: named ?? everyResource }
  const run = await findCallerRun(call, id)
  return { calls: run?.suspended ?? [], resourceId: run?.resourceId ?? everyResource }
}
