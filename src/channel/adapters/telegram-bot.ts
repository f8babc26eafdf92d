import { checkNames, refused } from '../../base/arguments.ts'
import { keepSecret } from '../../base/redact.ts'
import { parseObject } from '../../sources/body.ts'
import { checkSecrets, isEqual, unverified } from '../../sources/signature.ts'
import type { ChannelAdapter, ChannelDelivery, ChannelReply, ChannelRequest, SentReply } from '../adapter.ts'
import { checkMessage, cut, type InboundAttachment, type InboundMessage } from '../message.ts'
import { callProvider, checkBaseUrl, checkReplyLength, refusedBy } from './provider-call.ts'
import { checkBodySize, listField, missing, objectField, textField, wholeField } from './request.ts'

/** The options of `telegramBot()`. */
export interface TelegramBotOptions {
  /** The `secret_token` of `setWebhook`; several during a rotation. */
  secretToken: string | readonly string[]
  /** The bot's token, for replies. */
  botToken?: string
  /** Defaults to `https://api.telegram.org`. */
  baseUrl?: string
}

/** A Telegram bot: private chats, groups, topics of groups, and channels. */
export function telegramBot(options: TelegramBotOptions): ChannelAdapter {
  return new TelegramBot(options)
}

const provider = 'Telegram'

class TelegramBot implements ChannelAdapter {
  readonly kind = 'telegram'
  readonly maxReplyLength = 4_096
  readonly send?: (reply: ChannelReply) => Promise<SentReply>
  readonly #secrets: Buffer[]
  /** The id of the bot's own user, which its token begins with. */
  readonly #botId: number | undefined

  constructor(options: TelegramBotOptions) {
    checkNames('telegramBot', options, ['secretToken', 'botToken', 'baseUrl'])
    const { secretToken, botToken, baseUrl = 'https://api.telegram.org' } = options
    this.#secrets = checkSecrets('telegramBot', secretToken).map((secret) => Buffer.from(secret))
    const base = checkBaseUrl('telegramBot.baseUrl', baseUrl)
    if (botToken === undefined) return
    const id = /^([1-9]\d{0,15}):[\w-]{16,}$/.exec(botToken)?.[1]
    if (id === undefined) throw refused('telegramBot.botToken', 'the token of a bot, as 123456:ABC…')
    keepSecret(botToken)
    this.#botId = Number(id)
    this.send = (reply) => this.#post(`${base}/bot${botToken}/sendMessage`, reply)
  }

  receive({ headers, body }: ChannelRequest): ChannelDelivery {
    checkBodySize(body)
    const given = Buffer.from(headers.get('x-telegram-bot-api-secret-token') ?? '')
    if (!this.#secrets.some((secret) => isEqual(given, secret))) throw unverified('Its secret token is wrong.')
    const update = parseObject(body)
    if (wholeField(update, 'update_id') === undefined) throw missing(provider, 'update_id')
    // Edits, reactions, button presses and everything else that is no new message have other fields.
    const message = objectField(update, 'message') ?? objectField(update, 'channel_post')
    return { messages: message === undefined ? [] : this.#message(message) }
  }

  #message(message: Record<string, unknown>): InboundMessage[] {
    const chat = objectField(message, 'chat')
    const chatId = wholeField(chat, 'id')
    const messageId = wholeField(message, 'message_id')
    const date = wholeField(message, 'date')
    if (chatId === undefined) throw missing(provider, 'chat.id')
    if (messageId === undefined) throw missing(provider, 'message_id')
    if (date === undefined) throw missing(provider, 'date')
    const text = textField(message, 'text') ?? textField(message, 'caption')
    const attachments = attachmentsOf(message)
    // Joins, pins, polls, places: nothing was written.
    if (text === undefined && attachments.length === 0) return []
    const from = objectField(message, 'from')
    // A group or a channel that writes as itself: `from` is then a placeholder, or missing.
    const asChat = objectField(message, 'sender_chat') ?? (from === undefined ? chat : undefined)
    const senderId = wholeField(asChat ?? from, 'id')
    if (senderId === undefined) throw missing(provider, 'from.id')
    const topic = message.is_topic_message === true ? wholeField(message, 'message_thread_id') : undefined
    const botIds = [asChat === undefined ? wholeField(from, 'id') : undefined, wholeField(objectField(message, 'via_bot'), 'id')]
    return [
      checkMessage('message', {
        providerId: `${chatId}:${messageId}`,
        sender: { address: String(senderId), name: nameOf(asChat ?? from), verified: true },
        conversation: topic === undefined ? String(chatId) : `${chatId}:${topic}`,
        text: text ?? '',
        attachments,
        sentAt: new Date(date * 1_000),
        own: this.#botId !== undefined && botIds.includes(this.#botId),
        automatic: asChat === undefined && from?.is_bot === true,
      }),
    ]
  }

  async #post(url: string, { to, conversation, text, abortSignal }: ChannelReply): Promise<SentReply> {
    checkReplyLength(provider, text, this.maxReplyLength)
    const [, chat, topic] = /^(-?\d{1,16})(?::(\d{1,16}))?$/.exec(conversation ?? to) ?? []
    if (chat === undefined) throw refused(conversation === undefined ? 'to' : 'conversation', 'the id of a chat')
    const answer = await callProvider({
      provider,
      url,
      headers: { 'content-type': 'application/json' },
      // Plain text. A preview would make Telegram fetch every link in it.
      body: JSON.stringify({
        chat_id: Number(chat),
        ...(topic === undefined ? {} : { message_thread_id: Number(topic) }),
        text,
        link_preview_options: { is_disabled: true },
      }),
      abortSignal,
    })
    const messageId = wholeField(objectField(answer.value, 'result'), 'message_id')
    if (answer.ok) return messageId === undefined ? {} : { providerId: `${chat}:${messageId}` }
    const wait = wholeField(objectField(answer.value, 'parameters'), 'retry_after')
    const reason = textField(answer.value, 'description')
    const refusal = wait === undefined ? answer : { ...answer, retryAfterMs: wait * 1_000 }
    throw refusedBy(provider, refusal, reason === undefined ? undefined : cut(reason, 200))
  }
}

function nameOf(sender: Record<string, unknown> | undefined): string | undefined {
  const names = [textField(sender, 'title') ?? textField(sender, 'first_name'), textField(sender, 'last_name')]
  return names.filter((name) => name !== undefined).join(' ') || undefined
}

/** An animation is repeated as a document. */
const kinds = ['animation', 'document', 'audio', 'video', 'video_note', 'voice', 'sticker'] as const
const mediaTypes: Readonly<Record<string, string>> = { video_note: 'video/mp4' }

function attachmentsOf(message: Record<string, unknown>): InboundAttachment[] {
  const kind = kinds.find((name) => objectField(message, name) !== undefined)
  // Sizes of one photo, the largest last.
  const photo = listField(message, 'photo').at(-1)
  if (kind === undefined) return photo === undefined ? [] : [attachment(photo, 'image/jpeg')]
  return [attachment(objectField(message, kind), mediaTypes[kind])]
}

function attachment(file: unknown, type: string | undefined): InboundAttachment {
  const size = wholeField(file, 'file_size')
  return {
    filename: textField(file, 'file_name'),
    mediaType: textField(file, 'mime_type') ?? type,
    ...(size !== undefined && size >= 0 ? { size } : {}),
  }
}
