import type { WebhookRequest } from '../sources/event.ts'
import type { InboundMessage } from './message.ts'

/** An unverified request of a provider. */
export type ChannelRequest = WebhookRequest

/** What the provider expects as the response. */
export interface ChannelAnswer {
  status: number
  /** The exact text, of the type that `headers` name. */
  body?: string
  headers?: Readonly<Record<string, string>>
}

/** The messages of a verified request. */
export interface ChannelDelivery {
  /** Empty for handshakes, receipts, edits and whatever else is no new message. */
  messages: readonly InboundMessage[]
  /** Without one, the response is 200. It never depends on who wrote a message, or on what. */
  answer?: ChannelAnswer
}

/** A reply that an adapter sends. */
export interface ChannelReply {
  /** The address of the sender that is answered. Only `sender.verified` of its message says whether it is the sender's. */
  to: string
  /** The conversation of the message that is answered. */
  conversation?: string
  text: string
  /** The same for every attempt to send this reply. */
  idempotencyKey: string
  abortSignal: AbortSignal
}

/** What the provider answered to a reply. */
export interface SentReply {
  /** The provider's id of the sent message. */
  providerId?: string
}

/** Verifies and maps the requests of one provider, and sends replies. The kind of a channel is configured, and never part of a request. */
export interface ChannelAdapter {
  /** The kind of the channels that it serves unless they have their own: `sms`, `telegram`, … */
  readonly kind: string
  /** Replies have at most this many characters. */
  readonly maxReplyLength?: number
  /**
   * Verifies the request before it reads anything else of it: throws `unauthorized`. A verified request that is malformed is rejected with
   * `invalid_argument`, and one that is too large with `too_large`. `now` is in milliseconds since the epoch.
   */
  receive(request: ChannelRequest, now: number): ChannelDelivery
  /**
   * Sends a reply; absent where the provider has none, or where the adapter has no credentials for it. It is called again with the same
   * text and `idempotencyKey` where the result is not known, or where it throws an error that is `retryable` or no `HeedError`. An error
   * has `details.maybeSent` where the provider may have sent the reply nevertheless, and `details.retryAfterMs` where it asked to wait.
   */
  send?(reply: ChannelReply): Promise<SentReply>
  /** Called by the channel that the adapter belongs to. For adapters that receive messages otherwise than by requests. */
  connect?(accept: (delivery: ChannelDelivery) => Promise<void>): void
}
