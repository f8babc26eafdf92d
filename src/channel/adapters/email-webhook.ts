import { checkNames, checkText, refused } from '../../base/arguments.ts'
import type { JSONObject } from '../../base/json.ts'
import { parseObject } from '../../sources/body.ts'
import { checkSecrets, isSigningKey, verifyStandardWebhook } from '../../sources/signature.ts'
import type { ChannelAdapter, ChannelDelivery, ChannelRequest } from '../adapter.ts'
import { normalAddress } from '../address.ts'
import { checkMessage, type InboundAttachment, type InboundMessage } from '../message.ts'
import { decodeWords, headerValues, invalidMail, readDmarc, readFrom, type MailHeader } from './email-headers.ts'
import { checkBodySize, listField, missing, textField } from './request.ts'
import { readAttachments } from './standard-webhook.ts'

/** A received mail, in the default shape of the body. */
export interface ReceivedMail {
  /** All headers as they were received, from top to bottom, repeated ones too. */
  headers: readonly MailHeader[]
  /** The decoded plain text. */
  text: string
  attachments?: readonly InboundAttachment[]
}

/** The options of `emailWebhook()`. */
export interface EmailWebhookOptions {
  /** The secret of Standard Webhooks signatures (`whsec_…`); several during a rotation. */
  secret: string | readonly string[]
  /**
   * The id that the own receiving server writes into `Authentication-Results`. The server has to evaluate DMARC, and to remove headers with
   * its id from mail that it receives.
   */
  authservId: string
  /** Addresses of the channel itself: mail from them is its own. */
  own?: readonly string[]
  /** The mail of a body that is not of the default shape; undefined for none. */
  map?: (webhook: { id: string; body: JSONObject }) => ReceivedMail | undefined
}

/** Mail that a receiving service sends on as signed webhooks. The sender is verified by DMARC. */
export function emailWebhook(options: EmailWebhookOptions): ChannelAdapter {
  return new EmailWebhook(options)
}

const maxHeaders = 1_000

class EmailWebhook implements ChannelAdapter {
  readonly kind = 'email'
  readonly #secrets: string[]
  readonly #authservId: string
  readonly #own: ReadonlySet<string>
  readonly #map: NonNullable<EmailWebhookOptions['map']>

  constructor(options: EmailWebhookOptions) {
    checkNames('emailWebhook', options, ['secret', 'authservId', 'own', 'map'])
    const { secret, authservId, own = [], map = defaultMail } = options
    this.#secrets = checkSecrets('emailWebhook', secret, isSigningKey)
    checkText('emailWebhook.authservId', authservId)
    this.#authservId = authservId
    this.#own = new Set(
      own.map((address) => normalAddress('email', address) ?? refuse(refused('emailWebhook.own', 'a list of mail addresses'))),
    )
    this.#map = map
  }

  receive({ headers, body }: ChannelRequest, now: number): ChannelDelivery {
    checkBodySize(body)
    const { id } = verifyStandardWebhook(headers, body, this.#secrets, now)
    const mail = this.#map({ id, body: parseObject(body) })
    return { messages: mail === undefined ? [] : [this.#message(id, mail)] }
  }

  #message(id: string, { headers, text, attachments }: ReceivedMail): InboundMessage {
    checkHeaders(headers)
    const { address, name } = readFrom(headers)
    const normal = normalAddress('email', address)
    const dmarc = readDmarc(headers, this.#authservId)
    const verified = normal !== undefined && dmarc?.result === 'pass' && dmarc.domain === normal.slice(normal.indexOf('@') + 1)
    const [subject] = headerValues(headers, 'subject')
    const sentAt = new Date(headerValues(headers, 'date')[0] ?? Number.NaN)
    return checkMessage('message', {
      // Not the Message-ID: the sender chooses it, and could take that of another message.
      providerId: id,
      sender: { address: normal ?? address, name, verified },
      text,
      subject: subject === undefined ? undefined : decodeWords(subject).trim(),
      attachments,
      ...(Number.isNaN(sentAt.getTime()) ? {} : { sentAt }),
      own: normal !== undefined && this.#own.has(normal),
      automatic: isAutomatic(headers),
    })
  }
}

function defaultMail({ body }: { body: JSONObject }): ReceivedMail {
  const text = textField(body, 'text')
  if (text === undefined) throw missing('the webhook', 'text')
  return { headers: listField(body, 'headers') as ReceivedMail['headers'], text, attachments: readAttachments(body) }
}

function checkHeaders(headers: unknown): asserts headers is readonly MailHeader[] {
  if (!Array.isArray(headers) || headers.length > maxHeaders) throw invalidMail(`no list of at most ${maxHeaders} headers`)
  for (const header of headers as unknown[]) {
    if (!Array.isArray(header) || header.length !== 2 || typeof header[0] !== 'string' || typeof header[1] !== 'string')
      throw invalidMail('a header that is not a pair of a name and a value')
  }
}

/** Automatic replies, notices and mailing lists. */
function isAutomatic(headers: readonly MailHeader[]): boolean {
  const submitted = headerValues(headers, 'auto-submitted').some((value) => !/^\s*no\b/i.test(value))
  const bulk = headerValues(headers, 'precedence').some((value) => /^\s*(?:bulk|list|junk|auto_reply)\b/i.test(value))
  return submitted || bulk || headerValues(headers, 'list-id').length > 0
}

function refuse(error: Error): never {
  throw error
}
