import { createHash } from 'node:crypto'
import { isName } from '../arguments.ts'
import type { Clock, Timer } from '../clock.ts'
import { HeedError, describe } from '../errors.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { Logger } from '../logger.ts'
import { maxNotificationId } from '../store/notification-states.ts'
import type { SubscriptionRecord, SubscriptionStore } from '../store/subscriptions.ts'
import { subscriptionTools } from './tools.ts'

/** Something that happened outside. */
export interface SourceEvent {
  /** The same id is the same event, however often it is told: each thread gets one notification of it. */
  id: string
  /** What it is about. Threads that subscribed to one of these hear of it. */
  externalIds: readonly string[]
  notification: Omit<NotificationInput, 'id' | 'source'> | ((subscription: SubscriptionRecord) => Omit<NotificationInput, 'id' | 'source'> | undefined)
}

/** A request as it came, before anybody trusts it. */
export interface WebhookRequest {
  headers: Headers
  /** The bytes that were signed, as text. */
  body: string
}

export interface WebhookAnswer {
  status: number
  body?: Record<string, unknown>
}

/** What a source works in. Given by the Heed that it is registered with. */
export interface SourceEnvironment {
  clock: Clock
  logger: Logger
  store(): Promise<SubscriptionStore>
  notify(subscription: SubscriptionRecord, notification: NotificationInput): Promise<void>
}

export interface SubscribeTarget {
  threadId: string
  resourceId: string
  agentId: string
  externalId: string
  metadata?: SubscriptionRecord['metadata']
}

const page = 200

/**
 * A place where things happen that threads want to hear of: it is asked (`poll`) or it tells (`handleWebhook`). Subscriptions are rows: they
 * outlive the process, and one process at a time asks. What is told ends in the notification inbox of every thread that subscribed.
 */
export abstract class SignalProvider {
  /** Names it in notifications, subscriptions and in its webhook's address. */
  abstract readonly id: string
  readonly name?: string
  /** How often `poll` is asked, in milliseconds. */
  readonly pollInterval?: number
  #environment: SourceEnvironment | undefined
  #timer: Timer | undefined
  #polling: Promise<void> | undefined

  /** What happened since the last time, as far as these subscriptions care. */
  poll?(subscriptions: readonly SubscriptionRecord[]): Promise<readonly SourceEvent[]>

  /** Checks what came and delivers it. Answers 2xx only when everything is stored: whoever sent it tries again otherwise. */
  handleWebhook?(request: WebhookRequest): Promise<WebhookAnswer>

  /** Tools with which an agent subscribes its own thread. */
  getTools(): ReturnType<typeof subscriptionTools> {
    return subscriptionTools(this)
  }

  /** @internal */
  connect(environment: SourceEnvironment): void {
    if (this.#environment) throw new HeedError('invalid_argument', `The source '${this.id}' belongs to a Heed already. Make another.`)
    this.#environment = environment
  }

  get isConnected(): boolean {
    return this.#environment !== undefined
  }

  async subscribe({ metadata = {}, ...target }: SubscribeTarget): Promise<SubscriptionRecord> {
    const { clock, store } = this.environment
    return (await store()).putSubscription({ ...target, sourceId: this.id, metadata, now: clock.now() })
  }

  /** Without `externalId`: everything that the thread subscribed to. Answers how many that were. */
  async unsubscribe(scope: { threadId: string; resourceId?: string; externalId?: string }): Promise<number> {
    return (await this.environment.store()).deleteSubscriptions({ ...scope, sourceId: this.id })
  }

  async listSubscriptions(query: { threadId?: string; resourceId?: string; externalId?: string; after?: SubscriptionRecord; limit?: number } = {}): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }> {
    return (await this.environment.store()).listSubscriptions({ ...query, sourceId: this.id, limit: query.limit ?? page })
  }

  /** Tells every thread that subscribed. Resolves when all of it is stored; answers how many threads that were. */
  async deliver({ id, externalIds, notification }: SourceEvent): Promise<number> {
    const told = new Set<string>()
    for (const externalId of new Set(externalIds)) {
      for await (const subscription of this.#subscribed(externalId)) {
        if (told.has(subscription.threadId)) continue
        const input = typeof notification === 'function' ? notification(subscription) : notification
        if (!input) continue
        told.add(subscription.threadId)
        await this.environment.notify(subscription, { ...input, id: notificationId(this.id, id), source: this.id })
      }
    }
    return told.size
  }

  /** @internal */
  start(): void {
    if (this.poll && this.pollInterval !== undefined) this.#schedule(0)
  }

  /** Ends the asking; what is being delivered is waited for. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#polling
  }

  protected get environment(): SourceEnvironment {
    if (!this.#environment) throw new HeedError('invalid_argument', `The source '${this.id}' belongs to no Heed yet. Register it: new Heed({ sources: [source] }).`)
    return this.#environment
  }

  async *#subscribed(externalId?: string): AsyncGenerator<SubscriptionRecord> {
    let after: SubscriptionRecord | undefined
    for (;;) {
      const { subscriptions, more } = await this.listSubscriptions({ ...(externalId === undefined ? {} : { externalId }), ...(after ? { after } : {}) })
      yield* subscriptions
      after = subscriptions.at(-1)
      if (!more) return
    }
  }

  /** At an even pace; a turn that comes while the last one is still at work is left out. */
  #schedule(delay: number): void {
    const { clock, logger } = this.environment
    this.#timer = clock.after(delay, () => {
      this.#schedule(this.pollInterval ?? 0)
      this.#polling ??= this.#ask()
        .catch((error: unknown) => logger.error('a source could not be asked', { source: this.id, error: describe(error) }))
        .finally(() => (this.#polling = undefined))
    }, { background: true })
  }

  async #ask(): Promise<void> {
    const { clock, store } = this.environment
    const now = clock.now()
    const subscriptions: SubscriptionRecord[] = []
    for await (const subscription of this.#subscribed()) subscriptions.push(subscription)
    if (subscriptions.length === 0) return
    if (!(await (await store()).claimPoll(this.id, now, now + (this.pollInterval ?? 0)))) return
    for (const event of (await this.poll?.(subscriptions)) ?? []) await this.deliver(event)
  }
}

/** The same for the same event, however long its own id is. */
function notificationId(sourceId: string, eventId: string): string {
  const id = `${sourceId}:${eventId}`
  return isName(id) && id.length <= maxNotificationId ? id : `event:${createHash('sha256').update(JSON.stringify([sourceId, eventId])).digest('hex')}`
}
