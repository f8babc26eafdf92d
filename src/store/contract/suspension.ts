import type { JSONValue } from '../../base/json.ts'
import type { Fence } from './threads.ts'

/** A call that waits for somebody: to be approved, or to be resumed with data. */
export interface SuspendedCall {
  toolCallId: string
  toolName: string
  args: JSONValue
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  /** The call of another agent's run that this one stands for. */
  child?: ChildCall
  /** Empty where the child went on by itself and is to be followed. */
  decision?: { approved?: boolean; reason?: string; resumeData?: JSONValue }
}

/** A call that waits in the run of an agent that was asked by another. */
export interface ChildCall {
  threadId: string
  runId: string
  step: number
  toolCallId: string
  toolName: string
}

export interface CallDecision {
  /** Under an id it is one decision, however often it is made: each time it is answered with the first. */
  id?: string
  runId?: string
  /** The step that made the call: some providers number their calls anew in every step. */
  step?: number
  /** May be left out when one call waits. */
  toolCallId?: string
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

export interface Decided {
  runId: string
  toolCallId: string
  agentId: string
  /** The lease, when nothing else is waited for. */
  fence?: Fence
  /** Threads whose runs waited for this one and go on: whoever can should claim them. */
  parents: string[]
}

export interface SuspendedEnd {
  ended: boolean
  /** Calls that waited for approval: they never began, and a row says so. */
  denied: Array<Pick<SuspendedCall, 'toolCallId' | 'toolName'> & { reason: string }>
  /** Something waits on the thread. */
  more: boolean
  /** The thread's epoch after it. */
  epoch: number
  /** As for a decision. */
  parents: string[]
}
