import type { Clock } from '../base/clock.ts'
import { describe, HeedError } from '../base/errors.ts'
import { notificationPriorities as priorities } from '../store/contract/notifications.ts'
import type { NotificationDeliveryAction, NotificationPriority, NotificationRecord } from '../store/contract/notifications.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** What happens to a notification. */
export interface NotificationDeliveryDecision {
  /**
   * `deliver`: its full text enters the run, or starts one. `queue`: its full text starts a run of its own. `defer`: its full text is sent
   * at `deliverAt`, or when the thread is idle. `summarize`: it is counted in a summary at `summaryAt`, or with the next one; with a
   * `deliverAt`, its full text follows on an idle thread. `persist`: it stays in the inbox only. `discard`: it is not stored.
   */
  action: NotificationDeliveryAction
  deliverAt?: Date
  summaryAt?: Date
  /** Stored with the record. */
  reason?: string
}

/** A decision, and the part of the policy that made it: `decide`, `sources.<source>`, `priorities.<priority>`, `default` or `table`. */
export interface RuledDecision extends NotificationDeliveryDecision {
  rule?: string
}

/** An action, or an action with its time. */
export type DeliveryChoice = NotificationDeliveryAction | NotificationDeliveryDecision

/** What `decide` of a delivery policy receives. */
export interface DecideContext {
  record: NotificationRecord
  /** A suspended thread is active. */
  threadState: 'active' | 'idle'
  now: Date
}

/** The part of the context that a policy without `decide` reads. */
export interface PolicyContext extends Omit<DecideContext, 'record'> {
  record: Pick<NotificationRecord, 'source' | 'priority'>
}

/** Evaluated in this order: `decide`, `sources`, `priorities`, `default`, then the default of every agent. */
export interface NotificationDeliveryPolicyConfig {
  default?: DeliveryChoice
  priorities?: Partial<Record<NotificationPriority, DeliveryChoice>>
  sources?: Record<string, DeliveryChoice>
  /**
   * Returns undefined to leave the decision to the rules. When it fails or takes too long, the rules decide and the record names the
   * reason.
   */
  decide?(context: DecideContext): DeliveryChoice | undefined | void | Promise<DeliveryChoice | undefined | void>
}

export { priorities }

/** An agent that receives notifications. */
export interface NotifiedAgent extends Runnable {
  readonly deliveryPolicy?: NotificationDeliveryPolicyConfig | undefined
}

const actions: readonly string[] = ['deliver', 'queue', 'defer', 'summarize', 'persist', 'discard'] satisfies NotificationDeliveryAction[]

/** The actions that take a time. */
const timesOf: Partial<Record<NotificationDeliveryAction, readonly string[]>> = {
  defer: ['deliverAt'], summarize: ['deliverAt', 'summaryAt'],
}
const times = "'defer' has a deliverAt, 'summarize' a summaryAt and a deliverAt"

/** The decision where the policy has no rule. */
function defaultDecision({ record: { priority }, threadState, now }: PolicyContext): NotificationDeliveryDecision {
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

/** The decision by the rules of a policy, without `decide`. */
export function decideByRules(policy: NotificationDeliveryPolicyConfig, context: PolicyContext): RuledDecision {
  const { source, priority } = context.record
  const rules = [[`sources.${source}`, own(policy.sources, source)], [`priorities.${priority}`, own(policy.priorities, priority)]] as const
  for (const [rule, chosen] of [...rules, ['default', policy.default] as const]) {
    if (chosen !== undefined) return { ...parseDecision(chosen), rule }
  }
  return { ...defaultDecision(context), rule: 'table' }
}

/** The decision of a choice. Throws for an invalid one: policies are user code. */
function parseDecision(choice: unknown, field = 'decide()'): NotificationDeliveryDecision {
  const decision: unknown = typeof choice === 'string' ? { action: choice } : choice
  if (
    typeof decision !== 'object' ||
    decision === null ||
    !('action' in decision) ||
    typeof decision.action !== 'string' ||
    !actions.includes(decision.action)
  ) {
    throw invalidPolicy(field, `must be one of ${actions.join(', ')}, or an object with such an action`)
  }
  const { action, deliverAt, summaryAt, reason, ...rest } = decision as Partial<NotificationDeliveryDecision> & {
    action: NotificationDeliveryAction
  }
  for (const [name, value] of Object.entries(rest))
    if (value !== undefined) throw invalidPolicy(`${field}.${name}`, 'is not known. Known: action, deliverAt, summaryAt, reason')
  for (const [name, value] of Object.entries({ deliverAt, summaryAt })) {
    if (value !== undefined && !(value instanceof Date && !Number.isNaN(value.getTime())))
      throw invalidPolicy(`${field}.${name}`, 'must be a valid Date')
    if (value !== undefined && !timesOf[action]?.includes(name))
      throw invalidPolicy(`${field}.${name}`, `has no meaning for '${action}'. ${times}`)
  }
  if (reason !== undefined && typeof reason !== 'string') throw invalidPolicy(`${field}.reason`, 'must be a string')
  return { action, ...(deliverAt ? { deliverAt } : {}), ...(summaryAt ? { summaryAt } : {}), ...(reason === undefined ? {} : { reason }) }
}

const known = new Set(['default', 'priorities', 'sources', 'decide'])

/** Rejects an invalid policy when the agent is made. */
export function checkPolicy(policy: unknown): void {
  if (typeof policy !== 'object' || policy === null || Array.isArray(policy)) throw invalidPolicy('deliveryPolicy', 'must be an object')
  const { default: fallback, priorities: byPriority, sources, decide } = policy as Record<string, unknown>
  for (const key of Object.keys(policy))
    if (!known.has(key)) throw invalidPolicy(`deliveryPolicy.${key}`, `is not known. Known: ${[...known].join(', ')}`)
  if (fallback !== undefined) parseDecision(fallback, 'deliveryPolicy.default')
  for (const [field, choices] of Object.entries({ priorities: byPriority, sources })) {
    if (choices === undefined) continue
    if (typeof choices !== 'object' || choices === null || Array.isArray(choices))
      throw invalidPolicy(`deliveryPolicy.${field}`, 'must be an object')
    for (const [key, choice] of Object.entries(choices)) {
      if (field === 'priorities' && !priorities.includes(key as NotificationPriority))
        throw invalidPolicy(`deliveryPolicy.priorities.${key}`, `is not a priority. Use ${priorities.join(', ')}`)
      parseDecision(choice, `deliveryPolicy.${field}.${key}`)
    }
  }
  if (decide !== undefined && typeof decide !== 'function') throw invalidPolicy('deliveryPolicy.decide', 'must be a function')
}

function own<Value>(choices: Partial<Record<string, Value>> | undefined, key: string): Value | undefined {
  return choices && Object.hasOwn(choices, key) ? choices[key] : undefined
}

function invalidPolicy(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `Invalid delivery policy: ${field} ${why}.`, { details: { field } })
}

const late = Symbol('late')

/** How long after the timeout of `decide()` another process may decide about a record. */
const graceMs = 25_000
/** How many late decisions are made concurrently. */
const maxLate = 1_000

/**
 * Makes decisions by policies. `decide` is user code: when it throws, returns an invalid choice or times out, the rules of the policy
 * decide, and the reason names the failure. No record is lost, and only its own record waits for it.
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

  /** Until when the record is hidden from other processes, so that `decide()` can take its whole time. */
  hiddenUntil(now: number): number {
    return now + this.#timeoutMs + graceMs
  }

  /** Rejects when this closes before the decision; the next process decides. */
  async decide(
    agent: NotifiedAgent, record: NotificationRecord, threadState: DecideContext['threadState'],
  ): Promise<RuledDecision> {
    const { clock, logger } = this.#runtime
    const policy = agent.deliveryPolicy ?? {}
    const context = { record, threadState, now: new Date(clock.now()) }
    if (!policy.decide) return decideByRules(policy, context)
    const fallBack = (reason: string, error: string): RuledDecision => {
      logger.warn('the decide() of a delivery policy failed; its rules decide', { agentId: agent.id, notificationId: record.id, error })
      const decision = decideByRules(policy, context)
      return { ...decision, reason: decision.reason === undefined ? reason : `${reason}: ${decision.reason}` }
    }
    try {
      const choice = await this.#withTimeout(clock, async () =>
        policy.decide?.({ ...context, record: Object.freeze(structuredClone(record)) }),
      )
      if (choice === late) return fallBack('policy-timeout', `decide() did not return within ${this.#timeoutMs} ms`)
      if (choice === undefined || choice === null) return decideByRules(policy, context)
      return { ...parseDecision(choice), rule: 'decide' }
    } catch (error) {
      if (this.#closed) throw this.#closed
      return fallBack('policy-failed', `decide() failed: ${describe(error)}`)
    }
  }

  /** How many further late decisions may begin. */
  get room(): number {
    return Math.max(0, maxLate - this.#late.size)
  }

  /** Tracks a decision that dispatches do not wait for. `work` must not reject. */
  trackLate(work: Promise<void>): void {
    const deciding = work.finally(() => this.#late.delete(deciding))
    this.#late.add(deciding)
  }

  /** Resolves when the late decisions that have begun are made. */
  async whenIdle(): Promise<void> {
    await Promise.all(this.#late)
  }

  close(): void {
    this.#closed = new HeedError('closed', 'This Heed was closed before its policy decided about a notification. The next process decides.')
    for (const end of this.#waiting) end(this.#closed)
  }

  async #withTimeout<Result>(clock: Clock, work: () => Promise<Result>): Promise<Result | typeof late> {
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
