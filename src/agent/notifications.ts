import type { NotificationInput } from '../inbox/input.ts'
import type { NotificationTarget } from '../inbox/options.ts'
import type { NotificationDeliveryPolicyConfig } from '../inbox/policy.ts'
import type { NotificationResult } from '../inbox/result.ts'
import type { Askable } from './askable.ts'
import { checkStreamOptions } from './check-send.ts'

export type { NotificationDeliveryPolicyConfig, NotificationInput, NotificationResult, NotificationTarget }

/** One notification, or several that are stored together. `areNew`: all or none of them, refused with `id_taken` where one of their ids is there. */
export async function sendNotifications(
  agent: Askable,
  given: NotificationInput | readonly NotificationInput[],
  target: NotificationTarget,
  terms: { areNew?: boolean } = {},
): Promise<NotificationResult | NotificationResult[]> {
  checkStreamOptions(target)
  const here = await agent.resolveStorage(target?.ifIdle?.streamOptions?.requestContext)
  const { inbox } = here.site()
  if (isList(given)) return given.length === 0 ? [] : inbox.send(here, given, target, terms)
  const [result] = await inbox.send(here, [given], target, terms)
  return result as NotificationResult
}

function isList(given: NotificationInput | readonly NotificationInput[]): given is readonly NotificationInput[] {
  return Array.isArray(given)
}
