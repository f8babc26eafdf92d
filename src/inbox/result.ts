import type { CreatedAgentSignal } from '../signals/signal.ts'
import type { NotificationRecord } from '../store/contract/notifications.ts'
import type { NotificationDeliveryDecision } from './policy.ts'

/** What became of a notification at its ingress. */
export interface NotificationResult {
  accepted: true
  /** As it is stored. */
  record: NotificationRecord
  decision: NotificationDeliveryDecision
  /** Resolves when it would survive a power cut: whoever told of it may then forget it. */
  stored: Promise<void>
  /** With `signal`: what was emitted at once, in full or as a summary, and the run that it went to; where it wakes none, the id of the signal. */
  runId?: string
  signal?: CreatedAgentSignal
  /** Where that is stored without waking an idle thread: resolves when it is in history. */
  persisted?: Promise<void>
}
