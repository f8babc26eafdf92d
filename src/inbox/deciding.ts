import type { Clock } from '../base/clock.ts'
import { describe, HeedError } from '../base/errors.ts'
import type { NotificationRecord } from '../store/contract/notifications.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { decisionOf, settledDecision, type DecideContext, type NotificationDeliveryDecision } from './policy.ts'

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
  async decide(agent: Runnable, record: NotificationRecord, threadState: DecideContext['threadState']): Promise<NotificationDeliveryDecision> {
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
