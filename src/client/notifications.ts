import type { NotificationInput } from '../inbox/input.ts'
import type { NotificationDeliveryDecision } from '../inbox/policy.ts'
import type { Signal } from '../signals/signal.ts'
import type { MarkedStatus, NotificationPriority, NotificationRecord, NotificationStatus } from '../store/contract/notifications.ts'
import type { ThreadScope } from './agent.ts'
import { freshKey, onceBy, type Connection } from './connection.ts'
import type { OverWire } from './wire.ts'

/** What became of a notification. */
export interface NotificationAnswer {
  accepted: true
  record: OverWire<NotificationRecord>
  decision: OverWire<NotificationDeliveryDecision>
  /** Of what was emitted at once. */
  runId?: string
  signal?: OverWire<Signal>
  /** The thread had it already, under the same id or key. */
  duplicate?: true
}

export interface NotificationFilter extends ThreadScope {
  status?: NotificationStatus[]
  priority?: NotificationPriority[]
  source?: string
  kind?: string
  /** In summaries, sources and kinds. */
  search?: string
  limit?: number
  /** The last record of the page before. */
  after?: string
}

/** The inbox of an agent. */
export class NotificationsClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = path
  }

  send(send: { notification: NotificationInput; ifIdle?: { streamOptions?: Record<string, unknown> } } & ThreadScope): Promise<NotificationAnswer> {
    return this.#connection.json(`${this.#path}/notifications`, { body: send, ...onceBy(send.notification.id) })
  }

  /** Several that are stored together. */
  async sendAll(send: { notifications: readonly NotificationInput[]; ifIdle?: { streamOptions?: Record<string, unknown> } } & ThreadScope): Promise<NotificationAnswer[]> {
    const isNamed = send.notifications.some(({ id }) => id !== undefined)
    const notifications = isNamed ? send.notifications.map((one) => ({ ...one, id: one.id ?? freshKey() })) : send.notifications
    return (await this.#connection.json<{ results: NotificationAnswer[] }>(`${this.#path}/notifications`, { body: { ...send, notifications }, ...(isNamed ? { repeatable: true } : { idempotent: true }) })).results
  }

  /** Newest first. */
  list({ threadId, status, priority, ...query }: NotificationFilter): Promise<{ notifications: Array<OverWire<NotificationRecord>>; more: boolean; counts: Partial<Record<NotificationStatus, number>> }> {
    return this.#connection.json(this.#at(threadId), { query: { ...query, status: status?.join(','), priority: priority?.join(',') } })
  }

  get({ threadId, resourceId, id }: ThreadScope & { id: string }): Promise<OverWire<NotificationRecord>> {
    return this.#connection.json(this.#at(threadId, encodeURIComponent(id)), { query: { resourceId } })
  }

  /** Answers those that were changed. */
  async mark({ threadId, ...body }: ThreadScope & { ids: string[]; status: MarkedStatus }): Promise<Array<OverWire<NotificationRecord>>> {
    return (await this.#connection.json<{ notifications: Array<OverWire<NotificationRecord>> }>(this.#at(threadId, 'mark'), { body })).notifications
  }

  /** Sends again what could not be delivered. Answers how many. */
  async retry({ threadId, ...body }: ThreadScope & { ids: string[] }): Promise<number> {
    return (await this.#connection.json<{ retried: number }>(this.#at(threadId, 'retry'), { body })).retried
  }

  #at(threadId: string, rest?: string): string {
    return `${this.#path}/threads/${encodeURIComponent(threadId)}/notifications${rest === undefined ? '' : `/${rest}`}`
  }
}
