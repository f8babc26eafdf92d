import { checkNames } from '../base/arguments.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { NotificationDeliveryDecision } from '../inbox/policy.ts'
import type { Signal } from '../signals/signal.ts'
import type { MarkedStatus, NotificationRecord, NotificationStatus, RequestedNotifications } from '../store/contract/notifications.ts'
import { randomKey, retryPolicy, type Connection, type OverWire, type ThreadScope } from './connection.ts'
import { checkStreamOptions, listed, scopeFields } from './fields.ts'

/** The result of sending a notification. */
export interface NotificationAnswer {
  accepted: true
  record: OverWire<NotificationRecord>
  decision: OverWire<NotificationDeliveryDecision>
  /** Of a notification that was delivered at once. */
  runId?: string
  signal?: OverWire<Signal>
  /** The inbox already had it, with the same id or key. */
  duplicate?: true
}

/** Which notifications of a thread a list has. */
export interface NotificationFilter extends ThreadScope, RequestedNotifications {}

/** The inbox of an agent. */
export class NotificationsClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = path
  }

  async send(
    send: { notification: NotificationInput; ifIdle?: { streamOptions?: Record<string, unknown> } } & ThreadScope,
  ): Promise<NotificationAnswer> {
    checkNotificationSend('send()', send, 'notification')
    return this.#connection.json(`${this.#path}/notifications`, { body: send, ...retryPolicy(send.notification.id) })
  }

  /** Sends several, which are stored in one transaction. */
  async sendAll(
    send: { notifications: readonly NotificationInput[]; ifIdle?: { streamOptions?: Record<string, unknown> } } & ThreadScope,
  ): Promise<NotificationAnswer[]> {
    checkNotificationSend('sendAll()', send, 'notifications')
    const hasIds = send.notifications.some(({ id }) => id !== undefined)
    const notifications = hasIds ? send.notifications.map((one) => ({ ...one, id: one.id ?? randomKey() })) : send.notifications
    const { results } = await this.#connection.json<{ results: NotificationAnswer[] }>(`${this.#path}/notifications`, {
      body: { ...send, notifications },
      ...(hasIds ? { repeatable: true } : { idempotent: true }),
    })
    return results
  }

  /** Newest first. */
  async list(filter: NotificationFilter): Promise<{
    notifications: Array<OverWire<NotificationRecord>>
    more: boolean
    counts: Partial<Record<NotificationStatus, number>>
  }> {
    checkNames('list()', filter, [...scopeFields, 'status', 'priority', 'source', 'kind', 'search', 'limit', 'after'])
    const { threadId, status, priority, ...query } = filter
    return this.#connection.json(this.#threadPath(threadId), {
      query: { ...query, status: listed('status', status), priority: listed('priority', priority) },
    })
  }

  async get(notification: ThreadScope & { id: string }): Promise<OverWire<NotificationRecord>> {
    checkNames('get()', notification, [...scopeFields, 'id'])
    const { threadId, resourceId, id } = notification
    return this.#connection.json(this.#threadPath(threadId, encodeURIComponent(id)), { query: { resourceId } })
  }

  /** Resolves with those that changed. */
  async mark(marked: ThreadScope & { ids: string[]; status: MarkedStatus }): Promise<Array<OverWire<NotificationRecord>>> {
    checkNames('mark()', marked, [...scopeFields, 'ids', 'status'])
    const { threadId, ...body } = marked
    return (
      await this.#connection.json<{ notifications: Array<OverWire<NotificationRecord>> }>(this.#threadPath(threadId, 'mark'), { body })
    ).notifications
  }

  /** Retries those that could not be delivered. Resolves with their number. */
  async retry(failed: ThreadScope & { ids: string[] }): Promise<number> {
    checkNames('retry()', failed, [...scopeFields, 'ids'])
    const { threadId, ...body } = failed
    return (await this.#connection.json<{ retried: number }>(this.#threadPath(threadId, 'retry'), { body })).retried
  }

  #threadPath(threadId: string, rest?: string): string {
    return `${this.#path}/threads/${encodeURIComponent(threadId)}/notifications${rest === undefined ? '' : `/${rest}`}`
  }
}

function checkNotificationSend(method: string, send: object, input: 'notification' | 'notifications'): void {
  checkNames(method, send, [input, 'ifIdle', ...scopeFields])
  const { ifIdle } = send as { ifIdle?: unknown }
  if (ifIdle !== undefined) checkNames('ifIdle', ifIdle, ['streamOptions'])
  checkStreamOptions(ifIdle)
}
