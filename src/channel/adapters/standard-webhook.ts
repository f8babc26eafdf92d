import { checkNames } from '../../base/arguments.ts'
import { systemClock } from '../../base/clock.ts'
import type { JSONObject } from '../../base/json.ts'
import { parseObject } from '../../sources/body.ts'
import { checkSecrets, isSigningKey, signStandardWebhook, verifyStandardWebhook } from '../../sources/signature.ts'
import type { ChannelAdapter, ChannelDelivery, ChannelReply, ChannelRequest, SentReply } from '../adapter.ts'
import { checkMessage, type InboundMessage } from '../message.ts'
import { callProvider, checkWebhookUrl, refusedBy } from './provider-call.ts'
import { checkBodySize, listField, missing, objectField, textField, wholeField } from './request.ts'

/** A verified webhook. */
export interface ReceivedWebhook {
  /** The signed `webhook-id`. A retry has the same. */
  id: string
  body: JSONObject
}

/** The message of a webhook. Its id is that of the webhook, unless it has its own. */
export type MappedMessage = Omit<InboundMessage, 'providerId'> & { providerId?: string }

/** The options of `standardWebhook()`. */
export interface StandardWebhookOptions {
  /** The secret of Standard Webhooks signatures (`whsec_…`); several during a rotation. */
  secret: string | readonly string[]
  /** The message of a body that is not of the default shape; undefined for none. */
  map?: (webhook: ReceivedWebhook) => MappedMessage | undefined
  /** Where replies are posted, as webhooks that are signed the same way. Without it, the channel has none. */
  replies?: WebhookReplies
}

/** Where replies are sent, and how they are signed. */
export interface WebhookReplies {
  /** https, or http on this machine. */
  url: string
  /** Signs the replies. Defaults to the first secret of the channel. */
  secret?: string
}

/**
 * Any service that signs its webhooks by the Standard Webhooks scheme. Default body: `{ sender: { address, name?, verified? }, text,
 * conversation?, subject?, attachments?, sentAt?, own?, automatic? }`, with `sentAt` in ISO 8601. Other fields are ignored. A reply is
 * posted as `{ to, conversation?, text }`, with its idempotency key as `webhook-id`.
 */
export function standardWebhook(options: StandardWebhookOptions): ChannelAdapter {
  return new StandardWebhook(options)
}

class StandardWebhook implements ChannelAdapter {
  readonly kind = 'webhook'
  readonly send?: (reply: ChannelReply) => Promise<SentReply>
  readonly #secrets: string[]
  readonly #map: NonNullable<StandardWebhookOptions['map']>

  constructor(options: StandardWebhookOptions) {
    checkNames('standardWebhook', options, ['secret', 'map', 'replies'])
    this.#secrets = checkSecrets('standardWebhook', options.secret, isSigningKey)
    this.#map = options.map ?? defaultMessage
    const { replies } = options
    if (replies === undefined) return
    checkNames('standardWebhook.replies', replies, ['url', 'secret'])
    const own = replies.secret === undefined ? undefined : checkSecrets('standardWebhook.replies', replies.secret, isSigningKey)
    const [secret = ''] = own ?? this.#secrets
    const url = checkWebhookUrl('standardWebhook.replies.url', replies.url)
    this.send = (reply) => postReply(url, secret, reply)
  }

  receive({ headers, body }: ChannelRequest, now: number): ChannelDelivery {
    checkBodySize(body)
    const { id } = verifyStandardWebhook(headers, body, this.#secrets, now)
    const mapped = this.#map({ id, body: parseObject(body) })
    return { messages: mapped === undefined ? [] : [checkMessage('message', { ...mapped, providerId: mapped.providerId ?? id })] }
  }
}

/** Signs a reply with its idempotency key as the id and with the present time, and posts it: a repeat has the same id and a new time. */
async function postReply(url: string, secret: string, reply: ChannelReply): Promise<SentReply> {
  const { to, conversation, text, idempotencyKey, abortSignal } = reply
  const body = JSON.stringify({ to, ...(conversation === undefined ? {} : { conversation }), text })
  const headers = { 'content-type': 'application/json', ...signStandardWebhook(idempotencyKey, body, secret, systemClock.now()) }
  const answer = await callProvider({ provider: 'the webhook', url, headers, body, abortSignal })
  if (!answer.ok) throw refusedBy('The webhook', answer, undefined)
  const providerId = textField(answer.value, 'id')
  return providerId === undefined ? {} : { providerId }
}

function defaultMessage({ body }: ReceivedWebhook): MappedMessage {
  const sender = objectField(body, 'sender')
  const address = textField(sender, 'address')
  const text = textField(body, 'text')
  if (address === undefined) throw missing('the webhook', 'sender.address')
  if (text === undefined) throw missing('the webhook', 'text')
  const sentAt = textField(body, 'sentAt')
  return {
    // The service signed its statement about the sender. Without one, the sender is unverified.
    sender: { address, name: textField(sender, 'name'), verified: sender?.verified === true },
    text,
    conversation: textField(body, 'conversation'),
    subject: textField(body, 'subject'),
    attachments: readAttachments(body),
    ...(sentAt === undefined ? {} : { sentAt: new Date(sentAt) }),
    ...(body.own === true ? { own: true } : {}),
    ...(body.automatic === true ? { automatic: true } : {}),
  }
}

/** Attachments in a JSON body; fields of another type are left out. */
export function readAttachments(body: unknown): Array<{ filename?: string; mediaType?: string; size?: number }> {
  return listField(body, 'attachments').map((one) => {
    const size = wholeField(one, 'size')
    return {
      filename: textField(one, 'filename'),
      mediaType: textField(one, 'mediaType'),
      ...(size !== undefined && size >= 0 ? { size } : {}),
    }
  })
}
