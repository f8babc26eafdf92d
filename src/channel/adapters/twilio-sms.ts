import { createHash, createHmac } from 'node:crypto'
import { checkNames, checkText, refused } from '../../base/arguments.ts'
import { parseJSON } from '../../sources/body.ts'
import { checkSecrets, isEqual, unverified } from '../../sources/signature.ts'
import type { ChannelAdapter, ChannelAnswer, ChannelDelivery, ChannelReply, ChannelRequest, SentReply } from '../adapter.ts'
import { normalAddress } from '../address.ts'
import { checkMessage, type InboundMessage } from '../message.ts'
import { callProvider, checkBaseUrl, checkReplyLength, refusedBy } from './provider-call.ts'
import { checkBodySize, missing, objectField, textField, wholeField } from './request.ts'

/** The options of `twilioSms()`. */
export interface TwilioSmsOptions {
  /** The auth token of the account, which signs requests; several during a rotation. Replies use the first. */
  authToken: string | readonly string[]
  /** The URL of the webhook as Twilio has it, with its query. It is signed, and a proxy may have changed that of the request. */
  url: string
  /** Requests of other accounts are rejected. Needed for replies. */
  accountSid?: string
  /** The number or the messaging service (`MG…`) that replies are sent from. Messages from this number are the channel's own. */
  from?: string
  /** Defaults to `https://api.twilio.com`. */
  baseUrl?: string
}

/** Text messages through Twilio. */
export function twilioSms(options: TwilioSmsOptions): ChannelAdapter {
  return new TwilioSms(options)
}

/** An empty TwiML document: no reply with the response. Twilio logs a warning for other types. */
const noReply: ChannelAnswer = { status: 200, body: '<Response></Response>', headers: { 'content-type': 'text/xml' } }
const provider = 'Twilio'
const accountShape = /^AC[0-9a-f]{32}$/
const serviceShape = /^MG[0-9a-f]{32}$/
const maxParameters = 1_000
const maxEvents = 100

class TwilioSms implements ChannelAdapter {
  readonly kind = 'sms'
  readonly maxReplyLength = 1_600
  readonly send?: (reply: ChannelReply) => Promise<SentReply>
  readonly #tokens: string[]
  readonly #urls: readonly string[]
  readonly #accountSid: string | undefined
  readonly #from: string | undefined

  constructor(options: TwilioSmsOptions) {
    checkNames('twilioSms', options, ['authToken', 'url', 'accountSid', 'from', 'baseUrl'])
    const { authToken, url, accountSid, from, baseUrl = 'https://api.twilio.com' } = options
    this.#tokens = checkSecrets('twilioSms', authToken)
    checkText('twilioSms.url', url)
    this.#urls = signedUrls(url)
    if (accountSid !== undefined && !accountShape.test(accountSid)) throw refused('twilioSms.accountSid', "'AC' and 32 hexadecimal digits")
    if (from !== undefined && normalAddress('sms', from) === undefined && !serviceShape.test(from))
      throw refused('twilioSms.from', "a number such as +15550100000, or a messaging service ('MG' and 32 hexadecimal digits)")
    this.#accountSid = accountSid
    this.#from = from
    const base = checkBaseUrl('twilioSms.baseUrl', baseUrl)
    if (accountSid !== undefined && from !== undefined) this.send = (reply) => this.#post(base, { accountSid, from }, reply)
  }

  receive({ headers, body }: ChannelRequest): ChannelDelivery {
    checkBodySize(body)
    const type = (headers.get('content-type') ?? '').toLowerCase()
    const given = headers.get('x-twilio-signature') ?? ''
    if (type.startsWith('application/json')) {
      // Twilio adds the digest of a JSON body to the URL, and signs the URL.
      const digest = `bodySHA256=${createHash('sha256').update(body).digest('hex')}`
      this.#verify(given, this.#urls.map((url) => `${url}${url.includes('?') ? '&' : '?'}${digest}`), [])
      return { messages: this.#ofEvents(parseJSON(body)), answer: noReply }
    }
    const parameters = [...new URLSearchParams(body)]
    if (parameters.length > maxParameters) throw unverified(`It has more than ${maxParameters} parameters.`)
    this.#verify(given, this.#urls, parameters)
    return { messages: this.#ofForm(parameters), answer: noReply }
  }

  #verify(given: string, urls: readonly string[], parameters: ReadonlyArray<[string, string]>): void {
    const signature = Buffer.from(/^[\w+/]{27}=$/.test(given) ? given : '', 'base64')
    const wanted = this.#tokens.flatMap((token) => urls.map((url) => twilioSignature(token, url, parameters)))
    if (!wanted.some((one) => isEqual(signature, one))) throw unverified("Its signature is wrong, or 'url' is not the URL that Twilio has.")
  }

  #ofForm(parameters: ReadonlyArray<[string, string]>): InboundMessage[] {
    const read = (name: string): string | undefined => {
      const found = parameters.filter(([other]) => other === name)
      if (found.length > 1) throw missing(provider, name)
      return found[0]?.[1]
    }
    const sid = read('MessageSid')
    // Delivery receipts have a status of their own; calls have no message.
    if (sid === undefined || read('MessageStatus') !== undefined || (read('SmsStatus') ?? 'received') !== 'received') return []
    const media = Number(read('NumMedia') ?? 0)
    if (!Number.isSafeInteger(media) || media < 0) throw missing(provider, 'NumMedia')
    const length = Math.min(media, maxParameters)
    const attachments = Array.from({ length }, (_, index) => ({ mediaType: read(`MediaContentType${index}`) }))
    return this.#message({ sid, account: read('AccountSid'), from: read('From'), text: read('Body'), attachments })
  }

  /** Event Streams send a list of CloudEvents. */
  #ofEvents(value: unknown): InboundMessage[] {
    const events: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (events.length > maxEvents) throw missing(provider, 'events')
    return events.flatMap((event) => {
      if (textField(event, 'type') !== 'com.twilio.messaging.inbound-message.received') return []
      const data = objectField(event, 'data')
      const sentAt = new Date(textField(data, 'timestamp') ?? Number.NaN)
      return this.#message({
        sid: textField(data, 'messageSid'),
        account: textField(data, 'accountSid'),
        from: textField(data, 'from'),
        text: textField(data, 'body'),
        attachments: Array.from({ length: Math.min(Math.max(wholeField(data, 'numMedia') ?? 0, 0), maxEvents) }, () => ({})),
        ...(Number.isNaN(sentAt.getTime()) ? {} : { sentAt }),
      })
    })
  }

  #message({ sid, account, from, text, attachments, sentAt }: TwilioMessage): InboundMessage[] {
    if (sid === undefined || !/^[A-Z]{2}[0-9a-f]{32}$/.test(sid)) throw missing(provider, 'MessageSid')
    if (this.#accountSid !== undefined && account !== this.#accountSid) throw unverified('It is of another account.')
    if (from === undefined || from === '') throw missing(provider, 'From')
    // WhatsApp, RCS and Messenger come through the same webhook, and are no text messages.
    if (/^[a-z]+:/.test(from)) return []
    const verified = normalAddress('sms', from) !== undefined
    const own = from === this.#from
    return [checkMessage('message', { providerId: sid, sender: { address: from, verified }, text: text ?? '', attachments, sentAt, own })]
  }

  async #post(base: string, { accountSid, from }: { accountSid: string; from: string }, reply: ChannelReply): Promise<SentReply> {
    const { to, text, abortSignal } = reply
    checkReplyLength(provider, text, this.maxReplyLength)
    const answer = await callProvider({
      provider,
      url: `${base}/2010-04-01/Accounts/${accountSid}/Messages.json`,
      headers: {
        authorization: `Basic ${Buffer.from(`${accountSid}:${this.#tokens[0]}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ To: to, [serviceShape.test(from) ? 'MessagingServiceSid' : 'From']: from, Body: text }).toString(),
      abortSignal,
    })
    const providerId = textField(answer.value, 'sid')
    if (answer.ok) return providerId === undefined ? {} : { providerId }
    const code = wholeField(answer.value, 'code')
    throw refusedBy(provider, answer, code === undefined ? undefined : String(code))
  }
}

interface TwilioMessage {
  sid: string | undefined
  account: string | undefined
  from: string | undefined
  text: string | undefined
  attachments: Array<{ mediaType?: string }>
  sentAt?: Date
}

/** @internal HMAC-SHA1 of the URL and of all parameters by name, without separators. Equal values of one name count once. */
export function twilioSignature(token: string, url: string, parameters: ReadonlyArray<readonly [string, string]>): Buffer {
  const sorted = parameters
    .toSorted(([name, value], [other, otherValue]) => compare(name, other) || compare(value, otherValue))
    .filter(([name, value], index, all) => all[index - 1]?.[0] !== name || all[index - 1]?.[1] !== value)
  return createHmac('sha1', token).update(url + sorted.flat().join('')).digest()
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Some of Twilio's servers sign the URL with the port, and others without it. */
function signedUrls(given: string): string[] {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) throw refused('twilioSms.url', 'the https URL of the webhook, as Twilio has it')
  const { protocol, hostname, pathname, search } = url
  const auth = url.username === '' ? '' : `${url.username}${url.password === '' ? '' : `:${url.password}`}@`
  const rest = `${pathname}${search}`
  const port = url.port === '' ? (protocol === 'https:' ? '443' : '80') : url.port
  return [...new Set([given, `${protocol}//${auth}${hostname}${rest}`, `${protocol}//${auth}${hostname}:${port}${rest}`])]
}
