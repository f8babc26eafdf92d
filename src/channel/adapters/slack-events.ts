import { createHash, createHmac } from 'node:crypto'
import { checkNames, checkText, refused } from '../../base/arguments.ts'
import { isObject } from '../../base/json.ts'
import { keepSecret } from '../../base/redact.ts'
import { parseObject } from '../../sources/body.ts'
import { checkSecrets, isEqual, toleranceSeconds, unverified } from '../../sources/signature.ts'
import type { ChannelAdapter, ChannelDelivery, ChannelReply, ChannelRequest, SentReply } from '../adapter.ts'
import { checkMessage, isId, type InboundAttachment, type InboundMessage } from '../message.ts'
import { callProvider, checkBaseUrl, checkReplyLength, refusedBy } from './provider-call.ts'
import { checkBodySize, listField, missing, objectField, textField, wholeField } from './request.ts'

/** The options of `slackEvents()`. */
export interface SlackEventsOptions {
  /** The signing secret of the app; several during a rotation. */
  signingSecret: string | readonly string[]
  /** The bot token (`xoxb-…`), for replies. */
  botToken?: string
  /** The bot's user id (`U…`). Messages of the app are the channel's own without it; with it, also those that name no app. */
  botUserId?: string
  /** Defaults to `https://slack.com/api`. */
  baseUrl?: string
}

/** Messages of a Slack workspace, by the Events API. */
export function slackEvents(options: SlackEventsOptions): ChannelAdapter {
  return new SlackEvents(options)
}

const provider = 'Slack'
/** Messages with these subtypes were written; all others report a change, or that a user joined. */
const written: ReadonlySet<string | undefined> = new Set([undefined, 'bot_message', 'file_share', 'me_message', 'thread_broadcast'])
const longestChallenge = 1_024
const maxQuoted = 20

class SlackEvents implements ChannelAdapter {
  readonly kind = 'slack'
  readonly maxReplyLength = 12_000
  readonly send?: (reply: ChannelReply) => Promise<SentReply>
  readonly #secrets: string[]
  readonly #botUserId: string | undefined

  constructor(options: SlackEventsOptions) {
    checkNames('slackEvents', options, ['signingSecret', 'botToken', 'botUserId', 'baseUrl'])
    const { signingSecret, botToken, botUserId, baseUrl = 'https://slack.com/api' } = options
    this.#secrets = checkSecrets('slackEvents', signingSecret)
    if (botUserId !== undefined) checkText('slackEvents.botUserId', botUserId)
    this.#botUserId = botUserId
    const base = checkBaseUrl('slackEvents.baseUrl', baseUrl)
    if (botToken === undefined) return
    if (!/^xox[a-z]-[\w-]{8,}$/.test(botToken)) throw refused('slackEvents.botToken', 'a token of the app, as xoxb-…')
    keepSecret(botToken)
    this.send = (reply) => this.#post(base, botToken, reply)
  }

  receive({ headers, body }: ChannelRequest, now: number): ChannelDelivery {
    checkBodySize(body)
    verifySlack(headers, body, this.#secrets, now)
    const envelope = parseObject(body)
    if (envelope.type === 'url_verification') return handshake(textField(envelope, 'challenge'))
    const event = objectField(envelope, 'event')
    if (envelope.type !== 'event_callback' || event === undefined) return { messages: [] }
    // A mention is sent as a message too, if the app has both scopes: with the same channel and time.
    const isMessage = event.type === 'message' || event.type === 'app_mention'
    const isWritten = isMessage && written.has(textField(event, 'subtype')) && event.hidden !== true
    return { messages: isWritten ? this.#message(envelope, event) : [] }
  }

  #message(envelope: Record<string, unknown>, event: Record<string, unknown>): InboundMessage[] {
    const channel = textField(event, 'channel') ?? ''
    const ts = textField(event, 'ts') ?? ''
    const bot = textField(event, 'bot_id')
    const user = textField(event, 'user')
    const team = textField(event, 'user_team') ?? textField(event, 'team') ?? textField(envelope, 'team_id') ?? ''
    if (!/^[A-Z][A-Z0-9]{1,30}$/.test(channel)) throw missing(provider, 'event.channel')
    if (!/^\d{1,12}\.\d{1,9}$/.test(ts)) throw missing(provider, 'event.ts')
    if (!/^[TE][A-Z0-9]{1,30}$/.test(team)) throw missing(provider, 'team_id')
    const sender = bot ?? user ?? ''
    if (!/^[A-Z][A-Z0-9]{1,30}$/.test(sender)) throw missing(provider, 'event.user')
    const thread = textField(event, 'thread_ts')
    const profile = objectField(event, bot === undefined ? 'user_profile' : 'bot_profile')
    return [
      checkMessage('message', {
        // A retry has the same event_id; a mention and its message have different ones, and the same place in the channel.
        providerId: `${channel}:${ts}`,
        sender: { address: `${team}:${sender}`, name: textField(profile, 'real_name') ?? textField(profile, 'name'), verified: true },
        conversation: thread === undefined ? channel : `${channel}:${thread}`,
        text: textOf(event),
        attachments: listField(event, 'files').map(attachment),
        sentAt: new Date(Number(ts) * 1_000),
        own: this.#isOwn(envelope, event),
        automatic: bot !== undefined || user === 'USLACKBOT',
      }),
    ]
  }

  #isOwn(envelope: Record<string, unknown>, event: Record<string, unknown>): boolean {
    const app = textField(envelope, 'api_app_id')
    const user = textField(event, 'user')
    const apps = [textField(event, 'app_id'), textField(objectField(event, 'bot_profile'), 'app_id')]
    const bots = listField(envelope, 'authorizations').filter((one) => isObject(one) && one.is_bot === true)
    const users = [this.#botUserId, ...bots.map((one) => textField(one, 'user_id'))]
    return (app !== undefined && apps.includes(app)) || (user !== undefined && users.includes(user))
  }

  async #post(base: string, token: string, { to, conversation, text, idempotencyKey, abortSignal }: ChannelReply): Promise<SentReply> {
    checkReplyLength(provider, text, this.maxReplyLength)
    const [channel, thread] = conversation === undefined ? [to.split(':')[1]] : conversation.split(':')
    if (!isId(channel)) throw refused(conversation === undefined ? 'to' : 'conversation', 'that of a message from Slack')
    const answer = await callProvider({
      provider,
      url: `${base}/chat.postMessage`,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=utf-8' },
      // The text is literal: no mentions or links by markup, and no previews, for which Slack would fetch every link.
      body: JSON.stringify({
        channel, text: escaped(text), ...(thread === undefined ? {} : { thread_ts: thread }),
        client_msg_id: uuidOf(idempotencyKey), unfurl_links: false, unfurl_media: false,
      }),
      abortSignal,
    })
    const ts = textField(answer.value, 'ts')
    const where = textField(answer.value, 'channel') ?? channel
    if (answer.ok && isObject(answer.value) && answer.value.ok === true) return ts === undefined ? {} : { providerId: `${where}:${ts}` }
    const reason = /^[a-z_]{1,64}$/.exec(textField(answer.value, 'error') ?? '')?.[0]
    // Slack answers most errors with 200. What is neither an error nor a success came from a server between.
    const isError = isObject(answer.value) && answer.value.ok === false
    const status = answer.ok ? (isError ? (temporary.get(reason) ?? 400) : 502) : answer.status
    throw refusedBy(provider, { ...answer, status }, reason)
  }
}

/** Errors that pass, by the status that they have elsewhere. */
const temporary: ReadonlyMap<string | undefined, number> = new Map([
  ['ratelimited', 429], ['rate_limited', 429], ['message_limit_exceeded', 429], ['internal_error', 500], ['fatal_error', 500],
  ['service_unavailable', 503], ['request_timeout', 408],
])

/** `v0=`, and an HMAC of version, time and body. */
export function verifySlack(headers: Headers, body: string, secrets: readonly string[], now: number): void {
  const written = headers.get('x-slack-request-timestamp') ?? ''
  if (!/^\d{1,12}$/.test(written)) throw unverified('It has no X-Slack-Request-Timestamp.')
  if (Math.abs(now / 1_000 - Number(written)) > toleranceSeconds) throw unverified('Its timestamp is too old, or in the future.')
  const given = Buffer.from(/^v0=([0-9a-f]{64})$/.exec(headers.get('x-slack-signature') ?? '')?.[1] ?? '', 'hex')
  if (!secrets.some((secret) => isEqual(given, createHmac('sha256', secret).update(`v0:${written}:${body}`).digest())))
    throw unverified('Its signature is wrong.')
}

function handshake(challenge: string | undefined): ChannelDelivery {
  if (challenge === undefined || challenge.length > longestChallenge) throw missing(provider, 'challenge')
  return { messages: [], answer: { status: 200, body: JSON.stringify({ challenge }), headers: { 'content-type': 'application/json' } } }
}

/** Alerts of other apps often have their text in attachments alone. */
function textOf(event: Record<string, unknown>): string {
  const text = textField(event, 'text') ?? ''
  if (text !== '') return text
  const quoted = listField(event, 'attachments').slice(0, maxQuoted)
  return quoted.flatMap((one) => textField(one, 'fallback') ?? textField(one, 'text') ?? []).join('\n')
}

function attachment(file: unknown): InboundAttachment {
  const size = wholeField(file, 'size')
  return { filename: textField(file, 'name'), mediaType: textField(file, 'mimetype'), ...(size !== undefined && size >= 0 ? { size } : {}) }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** The form that Slack wants of a client's id: the same for the same key. */
function uuidOf(key: string): string {
  const hex = createHash('sha256').update(key).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
