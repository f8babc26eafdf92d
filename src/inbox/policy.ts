import { HeedError } from '../base/errors.ts'
import { notificationPriorities as priorities } from '../store/contract/notification-rules.ts'
import type { NotificationDeliveryAction, NotificationPriority, NotificationRecord } from '../store/contract/notifications.ts'

/** What is to happen to a notification. */
export interface NotificationDeliveryDecision {
  /**
   * `deliver`: its full text, into the run or as the start of one. `queue`: its full text as a turn of its own. `defer`: its full text at
   * `deliverAt`, or when the thread is idle. `summarize`: counted in a summary at `summaryAt`, or with all that waits; its full text
   * follows on an idle thread if there is a `deliverAt`. `persist`: only in the inbox. `discard`: nowhere.
   */
  action: NotificationDeliveryAction
  deliverAt?: Date
  summaryAt?: Date
  /** Kept on the record. */
  reason?: string
}

export type DeliveryChoice = NotificationDeliveryAction | NotificationDeliveryDecision

export interface DecideContext {
  record: NotificationRecord
  /** A suspended thread is active. */
  threadState: 'active' | 'idle'
  now: Date
}

/** As much of it as a policy looks at that has no `decide`. */
export interface PolicyContext extends Omit<DecideContext, 'record'> {
  record: Pick<NotificationRecord, 'source' | 'priority'>
}

/** Asked in this order: `decide`, `sources`, `priorities`, `default`, then what every agent does. */
export interface NotificationDeliveryPolicyConfig {
  default?: DeliveryChoice
  priorities?: Partial<Record<NotificationPriority, DeliveryChoice>>
  sources?: Record<string, DeliveryChoice>
  /** Answers nothing where it has no opinion. When it fails or takes too long, the next in order decides and the record says so. */
  decide?(context: DecideContext): DeliveryChoice | undefined | void | Promise<DeliveryChoice | undefined | void>
}

export { priorities }
const actions: readonly string[] = ['deliver', 'queue', 'defer', 'summarize', 'persist', 'discard'] satisfies NotificationDeliveryAction[]

/** What has a time of its own. Everything else happens at once, or never. */
const timesOf: Partial<Record<NotificationDeliveryAction, readonly string[]>> = { defer: ['deliverAt'], summarize: ['deliverAt', 'summaryAt'] }
const times = "'defer' has a deliverAt, 'summarize' a summaryAt and a deliverAt"

/** What is done where the policy has no opinion. */
function usualDecision({ record: { priority }, threadState, now }: PolicyContext): NotificationDeliveryDecision {
  switch (priority) {
    case 'urgent':
      return { action: 'deliver', reason: 'urgent' }
    case 'high':
      if (threadState === 'idle') return { action: 'deliver', reason: 'idle-high' }
      return { action: 'summarize', summaryAt: now, deliverAt: now, reason: 'active-high-summary-then-full' }
    case 'medium':
      return threadState === 'idle' ? { action: 'deliver', reason: 'idle-medium' } : { action: 'summarize', reason: 'active-batch-summary' }
    case 'low':
      return { action: 'summarize', reason: `${threadState}-low-summary` }
  }
}

/** The decision of everything but `decide`. */
export function settledDecision(policy: NotificationDeliveryPolicyConfig, context: PolicyContext): NotificationDeliveryDecision {
  const { source, priority } = context.record
  const chosen = own(policy.sources, source) ?? own(policy.priorities, priority) ?? policy.default
  return chosen === undefined ? usualDecision(context) : decisionOf(chosen)
}

/** A choice in its long form. Throws when it is none: policies come from outside. */
export function decisionOf(choice: unknown, field = 'decide()'): NotificationDeliveryDecision {
  const decision: unknown = typeof choice === 'string' ? { action: choice } : choice
  if (typeof decision !== 'object' || decision === null || !('action' in decision) || typeof decision.action !== 'string' || !actions.includes(decision.action)) {
    throw wrong(field, `must be one of ${actions.join(', ')}, or an object with such an action`)
  }
  const { action, deliverAt, summaryAt, reason, ...rest } = decision as Partial<NotificationDeliveryDecision> & { action: NotificationDeliveryAction }
  for (const [name, value] of Object.entries(rest)) if (value !== undefined) throw wrong(`${field}.${name}`, 'is not known. Known: action, deliverAt, summaryAt, reason')
  for (const [name, value] of Object.entries({ deliverAt, summaryAt })) {
    if (value !== undefined && !(value instanceof Date && !Number.isNaN(value.getTime()))) throw wrong(`${field}.${name}`, 'must be a valid Date')
    if (value !== undefined && !timesOf[action]?.includes(name)) throw wrong(`${field}.${name}`, `says nothing beside '${action}'. ${times}`)
  }
  if (reason !== undefined && typeof reason !== 'string') throw wrong(`${field}.reason`, 'must be a text')
  return { action, ...(deliverAt ? { deliverAt } : {}), ...(summaryAt ? { summaryAt } : {}), ...(reason === undefined ? {} : { reason }) }
}

const known = new Set(['default', 'priorities', 'sources', 'decide'])

/** Refuses what can be known to be wrong when the agent is made. */
export function checkPolicy(policy: unknown): void {
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) throw wrong('deliveryPolicy', 'must be an object')
  const { default: fallback, priorities: byPriority, sources, decide } = policy as Record<string, unknown>
  for (const key of Object.keys(policy)) if (!known.has(key)) throw wrong(`deliveryPolicy.${key}`, `is not known. Known: ${[...known].join(', ')}`)
  if (fallback !== undefined) decisionOf(fallback, 'deliveryPolicy.default')
  for (const [field, choices] of Object.entries({ priorities: byPriority, sources })) {
    if (choices === undefined) continue
    if (typeof choices !== 'object' || choices === null || Array.isArray(choices)) throw wrong(`deliveryPolicy.${field}`, 'must be an object')
    for (const [key, choice] of Object.entries(choices)) {
      if (field === 'priorities' && !priorities.includes(key as NotificationPriority)) throw wrong(`deliveryPolicy.priorities.${key}`, `is no priority. Use ${priorities.join(', ')}`)
      decisionOf(choice, `deliveryPolicy.${field}.${key}`)
    }
  }
  if (decide !== undefined && typeof decide !== 'function') throw wrong('deliveryPolicy.decide', 'must be a function')
}

function own<Value>(choices: Partial<Record<string, Value>> | undefined, key: string): Value | undefined {
  return choices && Object.hasOwn(choices, key) ? choices[key] : undefined
}

function wrong(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid delivery policy: ${field} ${why}.`, { details: { field } })
}
