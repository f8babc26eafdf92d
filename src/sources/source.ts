import { createHash } from 'node:crypto'
import { checkName, checkNames, checkObject, checkWhole } from '../base/arguments.ts'
import { isName } from '../base/json.ts'
import type { Clock } from '../base/clock.ts'
import { describe, HeedError, isHeedError, type HeedErrorCode } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { NotificationInput } from '../inbox/input.ts'
import { createTool, type Tool, type ToolContext } from '../run/tools/tool.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import { maxNotificationId } from '../store/contract/notifications.ts'
import type { SubscriptionRecord, SubscriptionStore } from '../store/contract/subscriptions.ts'
import type { PollAnswer, PollContext, SourceEvent, WebhookAnswer, WebhookRequest } from './event.ts'
import { Poller } from './poller.ts'

/** What a source needs of the Heed that it is registered with. */
export interface SourceEnvironment {
  clock: Clock
  logger: Logger
  store(): Promise<SubscriptionStore>
  /** Throws for an unknown agent and for a thread of another resource. */
  admit(target: { agentId: string; threadId: string; resourceId: string }): Promise<void>
  notify(subscription: SubscriptionRecord, notification: NotificationInput): Promise<void>
}

/** The thread that subscribes, and the external object. */
export interface SubscribeTarget {
  threadId: string
  resourceId: string
  agentId: string
  externalId: string
  metadata?: SubscriptionRecord['metadata']
}

const page = 200

/**
 * A source of events that threads subscribe to: it is polled (`poll`), or sends webhooks (`handleWebhook`). Subscriptions are stored; one
 * process at a time polls. Events become notifications in the inbox of every subscribed thread.
 */
export abstract class SignalProvider {
  /** Identifies it in notifications, in subscriptions and in the URL of its webhook. */
  abstract readonly id: string
  readonly name?: string
  /** The interval of `poll`, in milliseconds. */
  readonly pollInterval?: number
  #environment: SourceEnvironment | undefined
  #poller: Poller | undefined

  /**
   * The events since the last poll that concern these subscriptions. Any process may poll next: what it must know is returned as `cursor`,
   * which is stored once all events are. Without a cursor, return the events alone.
   */
  poll?(subscriptions: readonly SubscriptionRecord[], context: PollContext): Promise<readonly SourceEvent[] | PollAnswer>

  /** Verifies a request and delivers its event. Returns 2xx only when everything is stored: senders repeat other requests. */
  handleWebhook?(request: WebhookRequest): Promise<WebhookAnswer>

  /** Tools with which an agent subscribes its own thread. */
  getTools(): ReturnType<typeof subscriptionTools> {
    return subscriptionTools(this)
  }

  /** @internal */
  connect(environment: SourceEnvironment): void {
    if (this.#environment) throw new HeedError('invalid_argument', `The source '${this.id}' belongs to a Heed already. Create another.`)
    this.#environment = environment
  }

  get isConnected(): boolean {
    return this.#environment !== undefined
  }

  /** The agent must be one of the Heed's, and the thread, if it exists, of this resource. */
  async subscribe(target: SubscribeTarget): Promise<SubscriptionRecord> {
    checkNames('subscribe', target, ['threadId', 'resourceId', 'agentId', 'externalId', 'metadata'])
    const { threadId, resourceId, agentId, externalId, metadata = {} } = target
    for (const [name, value] of Object.entries({ threadId, resourceId, agentId, externalId })) checkName(name, value)
    checkObject('metadata', metadata)
    const { clock, store, admit } = this.environment
    await admit({ agentId, threadId, resourceId })
    return (await store()).putSubscription({ threadId, resourceId, agentId, externalId, sourceId: this.id, metadata, now: clock.now() })
  }

  /** Without `externalId`: all subscriptions of the thread. Returns how many were deleted. */
  async unsubscribe(scope: { threadId: string; resourceId?: string; externalId?: string }): Promise<number> {
    checkNames('unsubscribe()', scope, ['threadId', 'resourceId', 'externalId'])
    checkName('threadId', scope.threadId)
    return (await this.environment.store()).deleteSubscriptions({ ...scope, sourceId: this.id })
  }

  async listSubscriptions(
    query: { threadId?: string; resourceId?: string; externalId?: string; after?: SubscriptionRecord; limit?: number } = {},
  ): Promise<{ subscriptions: SubscriptionRecord[]; more: boolean }> {
    checkNames('listSubscriptions()', query, ['threadId', 'resourceId', 'externalId', 'after', 'limit'])
    if (query.limit !== undefined) checkWhole('limit', query.limit, 1)
    return (await this.environment.store()).listSubscriptions({ ...query, sourceId: this.id, limit: query.limit ?? page })
  }

  /**
   * Notifies every subscribed thread. Resolves with the number of threads when all notifications are stored. Rejects when one could not be
   * stored, after the others were: the same event may be delivered again.
   */
  async deliver(event: SourceEvent): Promise<number> {
    checkNames('deliver()', event, ['id', 'externalIds', 'notification'])
    const { logger, notify } = this.environment
    return notifySubscribers({ sourceId: this.id, logger, subscribed: (externalId) => this.#subscribed(externalId), notify }, event)
  }

  /** @internal */
  start(): void {
    const { pollInterval } = this
    if (!this.poll || pollInterval === undefined || this.#poller) return
    const { clock, logger, store } = this.environment
    this.#poller = new Poller({
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

  /** Stops polling. Resolves when the events in progress are delivered. */
  async stop(): Promise<void> {
    const poller = this.#poller
    this.#poller = undefined
    await poller?.stop()
  }

  protected get environment(): SourceEnvironment {
    if (!this.#environment)
      throw new HeedError(
        'invalid_argument', `The source '${this.id}' belongs to no Heed yet. Register it: new Heed({ sources: [source] }).`,
      )
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
      const { subscriptions, more } = await this.listSubscriptions({
        ...(externalId === undefined ? {} : { externalId }), ...(after ? { after } : {}),
      })
      yield* subscriptions
      after = subscriptions.at(-1)
      if (!more) return
    }
  }
}

interface EventDelivery {
  sourceId: string
  logger: Logger
  subscribed(externalId: string): AsyncIterable<SubscriptionRecord>
  notify(subscription: SubscriptionRecord, notification: NotificationInput): Promise<void>
}

/**
 * Notifies every subscribed thread, independently of the others. Rejects where a notification could not be stored now but may be later, so
 * that the sender repeats the event; threads that have it ignore the repetition.
 */
async function notifySubscribers(
  { sourceId, logger, subscribed, notify }: EventDelivery, { id, externalIds, notification }: SourceEvent,
): Promise<number> {
  const known = { id: notificationId(sourceId, id), source: sourceId }
  const notified = new Set<string>()
  const failed = new Map<string, unknown>()
  for (const externalId of new Set(externalIds)) {
    for await (const subscription of subscribed(externalId)) {
      const { threadId } = subscription
      if (notified.has(threadId)) continue
      try {
        const input = typeof notification === 'function' ? notification(subscription) : notification
        if (!input) continue
        await notify(subscription, { ...input, ...known })
        notified.add(threadId)
        failed.delete(threadId)
      } catch (error) {
        failed.set(threadId, error)
      }
    }
  }
  if (failed.size > 0) reportFailures([...failed], { known, notified: notified.size, logger })
  return notified.size
}

/** The error names no thread: the sender must not learn of them. */
function reportFailures(
  failed: ReadonlyArray<readonly [string, unknown]>,
  { known: { id, source }, notified, logger }: { known: { id: string; source: string }; notified: number; logger: Logger },
): void {
  const [, first] = failed[0] ?? []
  logger.error('threads could not be notified of an event', {
    source, event: id, threads: failed.length, threadIds: failed.slice(0, 10).map(([threadId]) => threadId), error: describe(first),
  })
  const errors = failed.map(([, error]) => error)
  if (errors.some((error) => !isFinal(error))) {
    throw new HeedError('store_failed', 'Not all of this event could be stored. Send it again.', {
      retryable: true, cause: new AggregateError(errors),
    })
  }
  // No thread was notified because the event itself is invalid.
  const wrong = notified === 0 ? errors.find((error) => isHeedError(error) && error.code === 'invalid_argument') : undefined
  if (wrong !== undefined) throw wrong
}

const final: ReadonlySet<string> = new Set<HeedErrorCode>(['invalid_argument', 'thread_forbidden', 'id_taken'])

/** The notification would be rejected again. */
function isFinal(error: unknown): boolean {
  return isHeedError(error) && final.has(error.code)
}

/** The same for repetitions of an event. A long id is hashed. */
function notificationId(sourceId: string, eventId: string): string {
  const id = `${sourceId}:${eventId}`
  return isName(id) && id.length <= maxNotificationId
    ? id
    : `event:${createHash('sha256')
        .update(JSON.stringify([sourceId, eventId]))
        .digest('hex')}`
}

const subscriptionInput: PlainJSONSchema = {
  type: 'object',
  properties: { id: { type: 'string', minLength: 1, maxLength: 512, description: 'The id of the subject, as the source names it.' } },
  required: ['id'],
  additionalProperties: false,
}

/** Tools with which an agent subscribes its own thread to a source, and no other thread. */
export function subscriptionTools(source: SignalProvider): Record<string, Tool> {
  const [subscribe, unsubscribe] = [`subscribe-${source.id}`, `unsubscribe-${source.id}`]
  return {
    [subscribe]: createTool({
      id: subscribe,
      description: `Subscribe this thread to events of ${source.name ?? source.id}.`,
      inputSchema: subscriptionInput,
      idempotent: true,
      async execute(input, context) {
        const { id: externalId } = input as { id: string }
        await source.subscribe({ ...threadOf(context), externalId })
        return { subscribed: externalId }
      },
    }),
    [unsubscribe]: createTool({
      id: unsubscribe,
      description: `Unsubscribe this thread from events of ${source.name ?? source.id}.`,
      inputSchema: subscriptionInput,
      idempotent: true,
      async execute(input, context) {
        const { id: externalId } = input as { id: string }
        const { threadId, resourceId } = threadOf(context)
        return { unsubscribed: await source.unsubscribe({ threadId, resourceId, externalId }) }
      },
    }),
  }
}

/** Always the thread of the call, whatever the model passes. */
function threadOf({ threadId, resourceId, agentId }: ToolContext): { threadId: string; resourceId: string; agentId: string } {
  if (threadId === undefined || resourceId === undefined)
    throw new HeedError('invalid_argument', 'Only an agent on a thread can subscribe: notifications need a thread.')
  return { threadId, resourceId, agentId }
}
