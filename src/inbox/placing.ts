import type { Ingested, NotificationRecord, NotificationStore, Settled, SettlementTerms } from '../store/contract/notifications.ts'
import type { ThreadRow } from '../store/contract/thread-row.ts'
import type { SendMode } from '../machine.ts'
import { optional, type Acceptance, type SendReceipt } from '../thread/send/receipt.ts'
import type { NotificationDeliveryDecision } from './policy.ts'
import type { NotificationResult } from './result.ts'

export type ThreadState = 'active' | 'idle'

/** A suspended thread is active, and one that isn't there is idle. */
export function stateOf(thread: ThreadRow | null): ThreadState {
  return thread && thread.status !== 'idle' ? 'active' : 'idle'
}

/** A decision that could be made before its record was there. */
export interface Foretold {
  decision: NotificationDeliveryDecision
  settlement: SettlementTerms
}

export interface Arrival extends Ingested {
  foretold?: Foretold | undefined
}

/** A record on its way through ingress. */
export interface Placing {
  record: NotificationRecord
  decision: NotificationDeliveryDecision
  settlement?: SettlementTerms
  settled?: Settled | undefined
}

export function isSentNow({ applied, batch }: Settled, settlement: SettlementTerms | undefined): boolean {
  return applied && (batch !== undefined || settlement?.action === 'deliver' || settlement?.action === 'queue')
}

/** As it was decided, also by a process that is gone. */
export function modeOf({ deliveryAction }: NotificationRecord): SendMode {
  return deliveryAction === 'queue' ? 'queue' : 'now'
}

/** The event is known already: it was counted, and nothing is to be done. */
export const duplicate: NotificationDeliveryDecision = { action: 'persist', reason: 'duplicate' }

/** A signal that its thread has. */
export interface Placed {
  receipt: SendReceipt
  acceptance: Acceptance
}

/** The run is the one that the thread promised the signal; where it has none, as what is in history only, it is known by its own id. */
export function resultOf(store: NotificationStore, record: NotificationRecord, decision: NotificationDeliveryDecision, sent: Placed | undefined): NotificationResult {
  let stored: Promise<void> | undefined
  return {
    accepted: true,
    record,
    decision,
    get stored() {
      stored ??= optional(store.flush())
      return stored
    },
    ...(sent ? { runId: sent.acceptance.runId ?? sent.receipt.signal.id, signal: sent.receipt.signal, ...(sent.receipt.persisted ? { persisted: sent.receipt.persisted } : {}) } : {}),
  }
}
