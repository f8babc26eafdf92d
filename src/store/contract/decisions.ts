import { HeedError } from '../../base/errors.ts'
import type { CallDecision, SuspendedCall } from './runs.ts'

/** The undecided call that a decision names, if any. Rejects a decision that names no single request. `of`: the place of the calls. */
export function findUndecided(calls: readonly SuspendedCall[], decision: CallDecision, of: string): SuspendedCall | undefined {
  const { toolCallId, approvalId, digest } = decision
  const open = calls.filter((call) => !call.decision)
  const named = open.filter((call) => {
    return (toolCallId === undefined || call.toolCallId === toolCallId) && (approvalId === undefined || call.request?.id === approvalId)
  })
  const [call] = named
  if (!call) return undefined
  if (named.length > 1 || (approvalId === undefined && call.again)) throw ambiguous(of, named)
  if (digest !== undefined && call.request && digest !== call.request.digest) {
    throw new HeedError('invalid_argument', `The digest is not that of request ${call.request.id}: read the request again, then decide.`, {
      details: { field: 'digest', approvalId: call.request.id },
    })
  }
  return call
}

function ambiguous(of: string, calls: readonly SuspendedCall[]): HeedError {
  const toolCallIds = calls.map(({ toolCallId }) => toolCallId)
  const approvalIds = calls.flatMap(({ request }) => request?.id ?? [])
  if (calls.length > 1) {
    const problem = `Several calls of ${of} wait for a decision.`
    return new HeedError('invalid_argument', `${problem} Name one of them as toolCallId: ${toolCallIds.join(', ')}.`, {
      details: { toolCallIds, approvalIds },
    })
  }
  return new HeedError(
    'invalid_argument',
    `Call ${toolCallIds.join()} of ${of} has asked for more than one decision. Name the request as approvalId.`,
    { details: { field: 'approvalId', toolCallIds, approvalIds } },
  )
}

/** Rejects a decision that does not decide the call, so that nothing runs because of it. */
export function checkDecision({ kind, toolCallId, toolName }: SuspendedCall, { approved, resumeData }: CallDecision): void {
  if (approved !== undefined && typeof approved !== 'boolean') {
    throw invalidDecision(toolCallId, `'approved' must be true or false, not ${JSON.stringify(approved)}`)
  }
  if (kind === 'approval' && approved === undefined) {
    throw invalidDecision(toolCallId, `${toolName} waits for approval: pass approved: true or approved: false`)
  }
  if (kind === 'suspend' && resumeData === undefined && approved !== false) {
    throw invalidDecision(toolCallId, `${toolName} waits for data: pass resumeData, or approved: false to decline`)
  }
}

function invalidDecision(toolCallId: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Call ${toolCallId} is not decided. ${why}.`, { details: { toolCallId, field: 'approved' } })
}
