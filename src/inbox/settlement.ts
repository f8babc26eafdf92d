import type { SettlementTerms } from '../store/contract/notifications.ts'
import type { InboxSettings } from './options.ts'
import type { NotificationDeliveryDecision } from './policy.ts'

/** How long something that is being sent stays hidden from others. */
export const claimMs = 30_000

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
