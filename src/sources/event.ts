import type { NotificationInput } from '../inbox/input.ts'
import type { JSONValue } from '../base/json.ts'
import type { SubscriptionRecord } from '../store/contract/subscriptions.ts'

/** An event of another system. */
export interface SourceEvent {
  /** Events of one id are one event: each thread gets one notification of it. */
  id: string
  /** What it is about. Threads that subscribed to one of these are notified. */
  externalIds: readonly string[]
  notification: ToldOfEvent | ((subscription: SubscriptionRecord) => ToldOfEvent | undefined)
}

/** The notification of an event. */
export type ToldOfEvent = Omit<NotificationInput, 'id' | 'source'>

/** An unverified request. */
export interface WebhookRequest {
  headers: Headers
  /** The signed bytes, as text. */
  body: string
}

/** The response to a webhook. */
export interface WebhookAnswer {
  status: number
  body?: Record<string, unknown>
}

/** What `poll()` of a source receives: its last cursor, and a signal that ends it. */
export interface PollContext {
  /** The cursor of the last `poll`, in any process, all of whose events were stored. */
  cursor?: JSONValue
  /** Aborts when this process stops polling the source. */
  signal: AbortSignal
}

/** Events, and the cursor from which the next `poll` continues, which must be JSON. */
export interface PollAnswer {
  events: readonly SourceEvent[]
  cursor: JSONValue
}
