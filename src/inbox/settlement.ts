import { claimMs } from '../schedule/dispatcher.ts'
import type { SendMode } from '../machine.ts'
import type { CreatedAgentSignal } from '../signals/signal.ts'
import type { Ingested, NotificationRecord, NotificationStore, Settled, SettlementTerms } from '../store/contract/notifications.ts'
import type { ThreadRow } from '../store/contract/thread.ts'
import { optional, type Acceptance, type SendReceipt } from '../thread/send/receipt.ts'
import type { InboxSettings } from './options.ts'
import type { NotificationDeliveryDecision } from './policy.ts'

/** How soon, and at the latest how late, one looks again after a thread that nobody said is idle. */
const recheckMs = { least: 15_000, most: 300_000 }

/** When threads are looked at again on which something waits: where this process is told of no end of a run, by every tick. */
export function recheckOf({ enabled }: InboxSettings): { least: number; most: number } {
  return enabled ? recheckMs : { least: 1, most: 1 }
}

/** A decision as the store writes it. */
export function settlementOf(decision: NotificationDeliveryDecision, threadState: 'active' | 'idle', { now, settings }: { now: number; settings: InboxSettings }): SettlementTerms {
  const { action, reason } = decision
  const deliverAt = decision.deliverAt?.getTime()
  const base = { action, now, claimUntil: now + claimMs, ...(reason === undefined ? {} : { reason }) }
  const soonest = now + recheckOf(settings).least
  const whenIdle = { whenIdle: { recheckAt: deliverAt !== undefined && deliverAt > now ? deliverAt : soonest } }
  switch (action) {
    case 'defer':
      if (deliverAt !== undefined) return { ...base, deliverAt }
      return threadState === 'idle' ? { ...base, action: 'deliver' } : { ...base, ...whenIdle }
    case 'summarize':
      return { ...base, summary: summaryTime(decision, now, settings), ...(deliverAt === undefined ? {} : { deliverAt, ...whenIdle }) }
    default:
      return base
  }
}

function summaryTime({ summaryAt }: NotificationDeliveryDecision, now: number, { quietMs, maxWaitMs }: InboxSettings): NonNullable<SettlementTerms['summary']> {
  if (!summaryAt) return { form: 'window', quietMs, maxWaitMs }
  const at = summaryAt.getTime()
  return at <= now ? { form: 'now' } : { form: 'timed', at, withinMs: maxWaitMs }
}

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
