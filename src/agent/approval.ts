import type { JSONValue } from '../json.ts'

/** What was decided about a call that waits on a thread. */
export interface ToolApproval {
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
