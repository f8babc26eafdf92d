import type { Clock } from '../clock.ts'
import { describe } from '../errors.ts'
import { decisionOf, settledDecision, type DecideContext, type NotificationDeliveryDecision, type NotificationDeliveryPolicyConfig } from './policy.ts'

const late = Symbol('late')

/**
 * The policy's decision. `decide` is a program's: when it throws, answers nonsense or doesn't answer in time, the rest of the policy
 * decides, and the reason names what happened. A record is never lost to it.
 */
export async function decideDelivery(
  policy: NotificationDeliveryPolicyConfig,
  context: DecideContext,
  { clock, timeoutMs, report }: { clock: Clock; timeoutMs: number; report(message: string): void },
): Promise<NotificationDeliveryDecision> {
  if (!policy.decide) return settledDecision(policy, context)
  try {
    const choice = await inTime(clock, timeoutMs, async () => policy.decide?.({ ...context, record: Object.freeze(structuredClone(context.record)) }))
    if (choice === late) return instead('policy-timeout', `decide() did not answer within ${timeoutMs} ms`)
    return choice === undefined || choice === null ? settledDecision(policy, context) : decisionOf(choice)
  } catch (error) {
    return instead('policy-failed', `decide() failed: ${describe(error)}`)
  }

  function instead(reason: string, message: string): NotificationDeliveryDecision {
    report(message)
    const decision = settledDecision(policy, context)
    return { ...decision, reason: decision.reason === undefined ? reason : `${reason}: ${decision.reason}` }
  }
}

async function inTime<Result>(clock: Clock, ms: number, work: () => Promise<Result>): Promise<Result | typeof late> {
  const { promise, resolve } = Promise.withResolvers<typeof late>()
  const timer = clock.after(ms, () => resolve(late))
  try {
    return await Promise.race([work(), promise])
  } finally {
    timer.cancel()
  }
}
