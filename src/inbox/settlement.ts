import { claimMs } from '../schedule/dispatcher.ts'
import type { SendMode } from '../machine.ts'
import type { CreatedAgentSignal } from '../signals/signal.ts'
import type { Ingested, NotificationRecord, NotificationStore, Settled, SettlementTerms } from '../store/contract/notifications.ts'
import type { ThreadRow } from '../store/contract/thread-row.ts'
import { optional, type Acceptance, type SendReceipt } from '../thread/send/receipt.ts'
import type { InboxSettings } from './options.ts'
import type { NotificationDeliveryDecision, RuledDecision } from './policy.ts'

/** The shortest and the longest time until a thread that may be idle is read again. */
const recheckMs = { least: 15_000, most: 300_000 }

/**
 * When threads are read again on which notifications wait for the end of a run. Where this process dispatches in `tick()` only, each tick
 * reads them.
 */
export function recheckOf({ enabled }: InboxSettings): { least: number; most: number } {
  return enabled ? recheckMs : { least: 1, most: 1 }
}

/** A decision in the form of the store. */
export function settlementOf(
  decision: RuledDecision, threadState: 'active' | 'idle', { now, settings }: { now: number; settings: InboxSettings },
): SettlementTerms {
  const { action, reason, rule } = decision
  const deliverAt = decision.deliverAt?.getTime()
  const why = { ...(reason === undefined ? {} : { reason }), ...(rule === undefined ? {} : { rule }) }
  const base = { action, now, claimUntil: now + claimMs, ...why }
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

function summaryTime(
  { summaryAt }: NotificationDeliveryDecision, now: number, { quietMs, maxWaitMs }: InboxSettings,
): NonNullable<SettlementTerms['summary']> {
  if (!summaryAt) return { form: 'window', quietMs, maxWaitMs }
  const at = summaryAt.getTime()
  return at <= now ? { form: 'now' } : { form: 'timed', at, withinMs: maxWaitMs }
}

export type ThreadState = 'active' | 'idle'

/** A suspended thread is active, a missing one idle. */
export function threadStateOf(thread: ThreadRow | null): ThreadState {
  return thread && thread.status !== 'idle' ? 'active' : 'idle'
}

/** A decision that was made before the record was stored. */
export interface EarlyDecision {
  decision: NotificationDeliveryDecision
  settlement: SettlementTerms
}

export interface ArrivedNotification extends Ingested {
  early?: EarlyDecision | undefined
}

/** A stored notification with its decision. */
export interface DecidedNotification {
  record: NotificationRecord
  decision: NotificationDeliveryDecision
  settlement?: SettlementTerms
  settled?: Settled | undefined
}

export function isSentNow({ applied, batch }: Settled, settlement: SettlementTerms | undefined): boolean {
  return applied && (batch !== undefined || settlement?.action === 'deliver' || settlement?.action === 'queue')
}

/** The mode that was decided, possibly by another process. */
export function modeOf({ deliveryAction }: NotificationRecord): SendMode {
  return deliveryAction === 'queue' ? 'queue' : 'now'
}

/** The event is a repetition: it was counted, and nothing else is done. */
export const duplicate: NotificationDeliveryDecision = { action: 'persist', reason: 'duplicate' }

/** A notification whose signal its thread has accepted. */
interface SentNotification {
  receipt: SendReceipt
  acceptance: Acceptance
}

/** The run is the one that is reserved for the signal; without one, the id of the signal takes its place. */
export function notificationResult(
  store: NotificationStore, record: NotificationRecord, decision: NotificationDeliveryDecision, sent: SentNotification | undefined,
): NotificationResult {
  let stored: Promise<void> | undefined
  return {
    accepted: true,
    record,
    decision,
    get stored() {
      stored ??= optional(store.flush())
      return stored
    },
    ...(sent
      ? {
          runId: sent.acceptance.runId ?? sent.receipt.signal.id,
          signal: sent.receipt.signal,
          ...(sent.receipt.persisted ? { persisted: sent.receipt.persisted } : {}),
        }
      : {}),
  }
}

/** The result of sending a notification. */
export interface NotificationResult {
  accepted: true
  /** As stored. */
  record: NotificationRecord
  decision: NotificationDeliveryDecision
  /** Resolves when the record would survive a power cut: its sender may then delete the event. */
  stored: Promise<void>
  /** With `signal`: the signal that was sent at once, in full or as a summary, and its run; where it wakes none, the id of the signal. */
  runId?: string
  signal?: CreatedAgentSignal
  /** Where the signal is persisted without waking an idle thread: resolves when it is in history. */
  persisted?: Promise<void>
}
