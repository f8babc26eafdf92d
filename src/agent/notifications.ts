import type { NotificationInput } from '../inbox/input.ts'
import type { NotificationTarget } from '../inbox/options.ts'
import type { NotificationDeliveryPolicyConfig } from '../inbox/policy.ts'
import type { NotificationResult } from '../inbox/settlement.ts'
import type { Askable } from './askable.ts'
import { checkStreamOptions } from './options.ts'

export type { NotificationDeliveryPolicyConfig, NotificationInput, NotificationResult, NotificationTarget }

/**
 * Sends one notification, or several in one transaction. `areNew`: rejects all of them with `id_taken` where one of their ids is stored.
 */
export async function sendNotifications(
  agent: Askable,
  given: NotificationInput | readonly NotificationInput[],
  target: NotificationTarget,
  terms: { areNew?: boolean } = {},
): Promise<NotificationResult | NotificationResult[]> {
  checkStreamOptions(target)
  const here = await agent.resolveStorage(target?.ifIdle?.streamOptions?.requestContext)
  const { inbox } = here.site()
  if (isBatch(given)) return given.length === 0 ? [] : inbox.send(here, given, target, terms)
  const [result] = await inbox.send(here, [given], target, terms)
  return result as NotificationResult
}

function isBatch(given: NotificationInput | readonly NotificationInput[]): given is readonly NotificationInput[] {
  return Array.isArray(given)
}
