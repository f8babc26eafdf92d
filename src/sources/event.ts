import type { NotificationInput } from '../inbox/input.ts'
import type { JSONValue } from '../base/json.ts'
import type { SubscriptionRecord } from '../store/contract/subscriptions.ts'

/** Something that happened outside. */
export interface SourceEvent {
  /** The same id is the same event, however often it is told: each thread gets one notification of it. */
  id: string
  /** What it is about. Threads that subscribed to one of these hear of it. */
  externalIds: readonly string[]
  notification: ToldOfEvent | ((subscription: SubscriptionRecord) => ToldOfEvent | undefined)
}

/** What a thread is told. */
export type ToldOfEvent = Omit<NotificationInput, 'id' | 'source'>

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

export interface PollContext {
  /** What the last `poll` answered, in whichever process, once all its events were stored. */
  cursor?: JSONValue
  /** Aborts when the source is no longer asked here. */
  signal: AbortSignal
}

/** What happened, and where to go on from: JSON that the next `poll` is given. */
export interface PollAnswer {
  events: readonly SourceEvent[]
  cursor: JSONValue
}
