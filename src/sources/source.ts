import { checkName, checkNames, checkObject } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { Logger } from '../base/logger.ts'
import type { SubscriptionRecord, SubscriptionStore } from '../store/contract/subscriptions.ts'
import { Asking } from './asking.ts'
import type { PollAnswer, PollContext, SourceEvent, WebhookAnswer, WebhookRequest } from './event.ts'
import { tell } from './telling.ts'
import { subscriptionTools } from './tools.ts'

/** What a source works in. Given by the Heed that it is registered with. */
export interface SourceEnvironment {
  clock: Clock
  logger: Logger
  store(): Promise<SubscriptionStore>
  /** Throws for an agent that isn't here and for a thread of another resource. */
  admit(target: { agentId: string; threadId: string; resourceId: string }): Promise<void>
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
  #asking: Asking | undefined

  /**
   * What happened since the last time, as far as these subscriptions care. Processes take turns: what one has to know of the last time it
   * answers as `cursor`, which is kept once all the events are stored. Without, it answers the events alone.
   */
  poll?(subscriptions: readonly SubscriptionRecord[], context: PollContext): Promise<readonly SourceEvent[] | PollAnswer>

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

  /** The agent is one of the Heed's, and the thread, where there is one already, of this resource. */
  async subscribe(target: SubscribeTarget): Promise<SubscriptionRecord> {
    checkNames('subscribe', target, ['threadId', 'resourceId', 'agentId', 'externalId', 'metadata'])
    const { threadId, resourceId, agentId, externalId, metadata = {} } = target
    for (const [name, value] of Object.entries({ threadId, resourceId, agentId, externalId })) checkName(name, value)
    checkObject('metadata', metadata)
    const { clock, store, admit } = this.environment
    await admit({ agentId, threadId, resourceId })
    return (await store()).putSubscription({ threadId, resourceId, agentId, externalId, sourceId: this.id, metadata, now: clock.now() })
  }

  /** Without `externalId`: everything that the thread subscribed to. Answers how many that were. */
  async unsubscribe(scope: { threadId: string; resourceId?: string; externalId?: string }): Promise<number> {
    return (await this.environment.store()).deleteSubscriptions({ ...scope, sourceId: this.id })
  }

  async listSubscriptions(query: { threadId?: string; resourceId?: string; externalId?: string; after?: SubscriptionRecord; limit?: number } = {}): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }> {
    return (await this.environment.store()).listSubscriptions({ ...query, sourceId: this.id, limit: query.limit ?? page })
  }

  /**
   * Tells every thread that subscribed. Resolves when all of it is stored; answers how many threads that were. Throws when something could
   * not be stored, after everybody else was told: the same event may be delivered again.
   */
  async deliver(event: SourceEvent): Promise<number> {
    const { logger, notify } = this.environment
    return tell({ sourceId: this.id, logger, subscribed: (externalId) => this.#subscribed(externalId), notify }, event)
  }

  /** @internal */
  start(): void {
    const { pollInterval } = this
    if (!this.poll || pollInterval === undefined || this.#asking) return
    const { clock, logger, store } = this.environment
    this.#asking = new Asking({
      sourceId: this.id,
      interval: pollInterval,
      clock,
      logger,
      store,
      subscriptions: () => this.#allSubscribed(),
      poll: async (subscriptions, context) => (await this.poll?.(subscriptions, context)) ?? [],
      deliver: (event) => this.deliver(event),
    })
  }

  /** Ends the asking; what is being delivered is waited for. */
  async stop(): Promise<void> {
    const asking = this.#asking
    this.#asking = undefined
    await asking?.stop()
  }

  protected get environment(): SourceEnvironment {
    if (!this.#environment) throw new HeedError('invalid_argument', `The source '${this.id}' belongs to no Heed yet. Register it: new Heed({ sources: [source] }).`)
    return this.#environment
  }

  async #allSubscribed(): Promise<SubscriptionRecord[]> {
    const all: SubscriptionRecord[] = []
    for await (const subscription of this.#subscribed()) all.push(subscription)
    return all
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
}
