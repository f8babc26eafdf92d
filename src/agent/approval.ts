import type { JSONValue } from '../base/json.ts'
import { decide, type Decision } from '../thread/control/decide.ts'
import type { Askable } from './askable.ts'
import type { AgentConfig } from './config.ts'
import { checkResumeData } from './resume.ts'

/** What was decided about a call that waits on a thread. */
export interface ToolApproval {
  /** On a thread, the same id is one decision: made again, it is answered with the first. */
  id?: string
  resourceId: string
  threadId: string
  /** May be left out when one call waits. */
  toolCallId?: string
  approved: boolean
  /** Why not, in words the model reads. */
  declineContext?: { reason?: string; message?: string }
  resumeData?: JSONValue
}

/** A run that waits, and which of its calls is meant. */
export interface SuspendedTarget {
  runId: string
  /** May be left out when one call waits. */
  toolCallId?: string
  /** Refuses the run when it belongs to another resource. */
  resourceId?: string
}

/** Data for a call that suspended itself. */
export interface CallResume {
  /** On a thread, the same id is one decision: made again, it is answered with the first. */
  id?: string
  resourceId: string
  threadId: string
  runId?: string
  toolCallId?: string
  resumeData: JSONValue
}

export interface CallDecided {
  accepted: true
  runId: string
  toolCallId: string
}

export function approveCall(agent: Askable, config: AgentConfig, { declineContext, ...decision }: ToolApproval): Promise<CallDecided> {
  const reason = declineContext?.reason ?? declineContext?.message
  return decideCall(agent, config, { ...decision, ...(reason === undefined ? {} : { reason }) })
}

export async function decideCall(agent: Askable, config: AgentConfig, decision: Decision): Promise<CallDecided> {
  await checkResumeData(agent, config, decision)
  const { runId, toolCallId } = await decide(agent.threads(), agent, decision)
  return { accepted: true, runId, toolCallId }
}
