import type { SettlementTerms } from '../store/notifications.ts'
import type { InboxSettings } from './options.ts'
import type { NotificationDeliveryDecision } from './policy.ts'

/** How long something that is being sent stays hidden from others. */
export const claimMs = 30_000

/** How often one looks after a thread that nobody said is idle. */
export const recheckMs = 15_000

/** A decision as the store writes it. */
export function settlementOf(decision: NotificationDeliveryDecision, threadState: 'active' | 'idle', { now, settings }: { now: number; settings: InboxSettings }): SettlementTerms {
  const { action, reason } = decision
  const deliverAt = decision.deliverAt?.getTime()
  const base = { action, now, claimUntil: now + claimMs, ...(reason === undefined ? {} : { reason }) }
  // Where nobody is told that a run ended, every tick looks.
  const soonest = settings.enabled ? now + recheckMs : now
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
