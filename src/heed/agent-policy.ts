import { describe } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { ToolPolicy } from '../run/loop/run-contract.ts'
import type { ReceivePolicy } from '../watch/watches.ts'
import { everyResource, isAllowed, type Policies } from './policies.ts'

const unknownCategories = { allowed: false, policies: [], awaitsCategories: true } as const

/**
 * Whether policies may decide otherwise about a message once it has all its categories. Of one whose annotator fails, the rules have found
 * some: a category that a policy names and that is not among them may be one that the annotator would choose.
 */
async function mayGetOthers(
  policies: Policies, tenant: string, { categories, rulesOnly }: Parameters<ReceivePolicy>[0]['inbound'],
): Promise<boolean> {
  if (categories !== undefined && rulesOnly === undefined) return false
  // Policies that do not say otherwise may depend on categories.
  if ((await policies.readsCategories?.(tenant)) === false) return false
  const named = categories === undefined ? [] : ((await policies.namedCategories?.(tenant)) ?? [])
  return named.length === 0 || named.some((name) => !categories?.includes(name))
}

/** Asks policies whether an agent may receive a message. Policies that fail deny. The tenant is the resource whose message it is. */
export function receivePolicyOf(policies: Policies, logger: Logger): ReceivePolicy {
  return async ({ action, agentId, resourceId, inbound }) => {
    const { channelId, kind, sender, contactId, categories } = inbound
    try {
      if (await mayGetOthers(policies, resourceId, inbound)) return unknownCategories
      const decision = await policies.authorize({
        tenant: resourceId,
        action,
        principal: { type: 'agent', id: agentId, resourceId },
        resource: {
          type: 'message_source',
          channel: { kind, id: channelId },
          verified: sender.verified,
          ...(contactId === undefined ? {} : { contactId }),
        },
        context: { categories: categories ?? 'unknown' },
      })
      const { policyIds, failure } = decision as { policyIds?: unknown; failure?: unknown }
      if (failure === 'categories_unknown') return unknownCategories
      return { allowed: isAllowed(decision), policies: Array.isArray(policyIds) ? policyIds.map(String) : [] }
    } catch (error) {
      logger.error('policies could not be asked about a message: it was denied', { agentId, action, error: describe(error) })
      return { allowed: false, policies: [] }
    }
  }
}

/**
 * Asks policies whether an agent may run a call of a tool by itself: whether it may approve its own call. Policies that fail deny. The
 * tenant is the resource of the run.
 */
export function toolPolicyOf(policies: Policies, logger: Logger): ToolPolicy {
  return async ({ agentId, resourceId = everyResource, toolName, taintedBy }) => {
    try {
      return isAllowed(await policies.authorize({
        tenant: resourceId,
        action: 'approve_tool',
        principal: { type: 'agent', id: agentId, resourceId },
        resource: { type: 'tool', name: toolName, agentId, resourceId },
        context: { taintedBy },
      }))
    } catch (error) {
      logger.error('policies could not be asked about a call: it needs an approval', { agentId, toolName, error: describe(error) })
      return false
    }
  }
}
