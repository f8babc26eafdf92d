import { createHash } from 'node:crypto'
import { checkName, checkNames, checkObject } from '../base/arguments.ts'
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
import { Asking } from './poller.ts'

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

export interface Telling {
  sourceId: string
  logger: Logger
  subscribed(externalId: string): AsyncIterable<SubscriptionRecord>
  notify(subscription: SubscriptionRecord, notification: NotificationInput): Promise<void>
}

/**
 * Tells every thread that subscribed, each by itself: one that can't be told keeps it from no other. Throws when something is not stored that
 * could be, so that whoever sent the event sends it again; what is stored already is then stored once.
 */
export async function tell({ sourceId, logger, subscribed, notify }: Telling, { id, externalIds, notification }: SourceEvent): Promise<number> {
  const known = { id: notificationId(sourceId, id), source: sourceId }
  const told = new Set<string>()
  const failed = new Map<string, unknown>()
  for (const externalId of new Set(externalIds)) {
    for await (const subscription of subscribed(externalId)) {
      const { threadId } = subscription
      if (told.has(threadId)) continue
      try {
        const input = typeof notification === 'function' ? notification(subscription) : notification
        if (!input) continue
        await notify(subscription, { ...input, ...known })
        told.add(threadId)
        failed.delete(threadId)
      } catch (error) {
        failed.set(threadId, error)
      }
    }
  }
  if (failed.size > 0) refuse([...failed], { known, told: told.size, logger })
  return told.size
}

/** What the sender is told names no thread: it is a stranger to them. */
function refuse(failed: ReadonlyArray<readonly [string, unknown]>, { known: { id, source }, told, logger }: { known: { id: string; source: string }; told: number; logger: Logger }): void {
  const [, first] = failed[0] ?? []
  logger.error('threads could not be told of an event', { source, event: id, threads: failed.length, threadIds: failed.slice(0, 10).map(([threadId]) => threadId), error: describe(first) })
  const errors = failed.map(([, error]) => error)
  if (errors.some((error) => !isFinal(error))) {
    throw new HeedError('store_failed', 'Not all of this event could be stored. Send it again.', { retryable: true, cause: new AggregateError(errors) })
  }
  // Nobody was told because there is something wrong with the event itself.
  const wrong = told === 0 ? errors.find((error) => isHeedError(error) && error.code === 'invalid_argument') : undefined
  if (wrong !== undefined) throw wrong
}

const final: ReadonlySet<string> = new Set<HeedErrorCode>(['invalid_argument', 'thread_forbidden', 'id_taken'])

/** It would be refused again, however often it is sent. */
function isFinal(error: unknown): boolean {
  return isHeedError(error) && final.has(error.code)
}

/** The same for the same event, however long its own id is. */
function notificationId(sourceId: string, eventId: string): string {
  const id = `${sourceId}:${eventId}`
  return isName(id) && id.length <= maxNotificationId ? id : `event:${createHash('sha256').update(JSON.stringify([sourceId, eventId])).digest('hex')}`
}

const what: PlainJSONSchema = {
  type: 'object',
  properties: { id: { type: 'string', minLength: 1, maxLength: 512, description: 'What to hear of, as the source names it.' } },
  required: ['id'],
  additionalProperties: false,
}

/** Tools with which an agent subscribes its own thread to a source, and no other thread. */
export function subscriptionTools(source: SignalProvider): Record<string, Tool> {
  const [subscribe, unsubscribe] = [`subscribe-${source.id}`, `unsubscribe-${source.id}`]
  return {
    [subscribe]: createTool({
      id: subscribe,
      description: `Be told on this thread when something happens to a thing of ${source.name ?? source.id}.`,
      inputSchema: what,
      idempotent: true,
      async execute(input, context) {
        const { id: externalId } = input as { id: string }
        await source.subscribe({ ...threadOf(context), externalId })
        return { subscribed: externalId }
      },
    }),
    [unsubscribe]: createTool({
      id: unsubscribe,
      description: `Be told no longer on this thread about a thing of ${source.name ?? source.id}.`,
      inputSchema: what,
      idempotent: true,
      async execute(input, context) {
        const { id: externalId } = input as { id: string }
        const { threadId, resourceId } = threadOf(context)
        return { unsubscribed: await source.unsubscribe({ threadId, resourceId, externalId }) }
      },
    }),
  }
}

/** Whatever the model passes, it is its own thread. */
function threadOf({ threadId, resourceId, agentId }: ToolContext): { threadId: string; resourceId: string; agentId: string } {
  if (threadId === undefined || resourceId === undefined) throw new HeedError('invalid_argument', 'Only an agent on a thread can subscribe: there is nowhere to tell it otherwise.')
  return { threadId, resourceId, agentId }
}
