import type { Clock } from '../base/clock.ts'
import { describe, HeedError } from '../base/errors.ts'
import { notificationPriorities as priorities } from '../store/contract/notifications.ts'
import type { NotificationDeliveryAction, NotificationPriority, NotificationRecord } from '../store/contract/notifications.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

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

/** An agent that receives notifications. */
export interface NotifiedAgent extends Runnable {
  readonly deliveryPolicy?: NotificationDeliveryPolicyConfig | undefined
}

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

const late = Symbol('late')

/** How long a record whose decision should be there waits until somebody else decides. */
const graceMs = 25_000
/** So many that nobody waits for are asked about at once. */
const mostLate = 1_000

/**
 * What policies decide. `decide` is a program's: when it throws, answers nonsense or doesn't answer in time, the rest of the policy decides, and
 * the reason names what happened. A record is never lost to it, and nothing but it waits for the answer.
 */
export class Decisions {
  readonly #runtime: ThreadRuntime
  readonly #timeoutMs: number
  readonly #waiting = new Set<(closed: HeedError) => void>()
  readonly #late = new Set<Promise<void>>()
  #closed: HeedError | undefined

  constructor(runtime: ThreadRuntime, timeoutMs: number) {
    this.#runtime = runtime
    this.#timeoutMs = timeoutMs
  }

  /** Until when nobody else is to ask, though the answer takes as long as it may. */
  hiddenFrom(now: number): number {
    return now + this.#timeoutMs + graceMs
  }

  /** Rejects when this is closed before there is an answer: whoever comes next decides. */
  async decide(agent: NotifiedAgent, record: NotificationRecord, threadState: DecideContext['threadState']): Promise<NotificationDeliveryDecision> {
    const { clock, logger } = this.#runtime
    const policy = agent.deliveryPolicy ?? {}
    const context = { record, threadState, now: new Date(clock.now()) }
    if (!policy.decide) return settledDecision(policy, context)
    const instead = (reason: string, error: string): NotificationDeliveryDecision => {
      logger.warn('a delivery policy had no answer; the rest of it decides', { agentId: agent.id, notificationId: record.id, error })
      const decision = settledDecision(policy, context)
      return { ...decision, reason: decision.reason === undefined ? reason : `${reason}: ${decision.reason}` }
    }
    try {
      const choice = await this.#inTime(clock, async () => policy.decide?.({ ...context, record: Object.freeze(structuredClone(record)) }))
      if (choice === late) return instead('policy-timeout', `decide() did not answer within ${this.#timeoutMs} ms`)
      return choice === undefined || choice === null ? settledDecision(policy, context) : decisionOf(choice)
    } catch (error) {
      if (this.#closed) throw this.#closed
      return instead('policy-failed', `decide() failed: ${describe(error)}`)
    }
  }

  /** How many more may be decided later. */
  get room(): number {
    return Math.max(0, mostLate - this.#late.size)
  }

  /** What is decided while others go on. `work` must not reject. */
  later(work: Promise<void>): void {
    const deciding = work.finally(() => this.#late.delete(deciding))
    this.#late.add(deciding)
  }

  /** Resolves when what was to be decided later until now is. */
  async settled(): Promise<void> {
    await Promise.all(this.#late)
  }

  close(): void {
    this.#closed = new HeedError('closed', 'This Heed was closed before its policy decided about a notification. The process that runs next decides.')
    for (const end of this.#waiting) end(this.#closed)
  }

  async #inTime<Result>(clock: Clock, work: () => Promise<Result>): Promise<Result | typeof late> {
    if (this.#closed) throw this.#closed
    const { promise, resolve, reject } = Promise.withResolvers<typeof late>()
    const timer = clock.after(this.#timeoutMs, () => resolve(late))
    this.#waiting.add(reject)
    try {
      return await Promise.race([work(), promise])
    } finally {
      this.#waiting.delete(reject)
      timer.cancel()
    }
  }
}
