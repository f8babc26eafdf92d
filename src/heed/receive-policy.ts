import { refused } from '../base/arguments.ts'
import { describe } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { CedarPolicies } from '../policy/policies.ts'
import type { ToolPolicy } from '../run/loop/run-contract.ts'
import type { ReceivePolicy } from '../watch/watches.ts'

/** What a Heed asks of its policies. */
export type Policies = Pick<CedarPolicies, 'authorize'>

/** The tenant of what concerns no resource, or all of them. */
export const everyResource = '*'

export function checkPolicies(policies: unknown): void {
  if (typeof (policies as Partial<CedarPolicies> | null)?.authorize !== 'function')
    throw refused('policies', 'policies: new CedarPolicies({ … }) of heed/policy')
}

/** Policies of the program's own may answer anything: only `true` allows. */
export function isAllowed({ allowed }: { allowed: unknown }): boolean {
  return allowed === true
}

/** Asks policies whether an agent may receive a message. Policies that fail deny. The tenant is the resource whose message it is. */
export function receivePolicyOf(policies: Policies, logger: Logger): ReceivePolicy {
  return async ({ action, agentId, resourceId, inbound: { channelId, kind, sender, contactId, categories = [] } }) => {
    try {
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
        context: { categories },
      })
      const { policyIds } = decision as { policyIds?: unknown }
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
