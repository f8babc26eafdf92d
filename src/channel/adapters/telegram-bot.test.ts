import { describe, expect, it } from 'vitest'
import { codeOf, localProvider, requestOf } from '../../../test/channel/local-provider.ts'
import type { ChannelReply } from '../adapter.ts'
import { telegramBot } from './telegram-bot.ts'

const secretToken = 'a-secret-token_of-the-bot'
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const adapter = telegramBot({ secretToken, botToken })

const ann = { id: 5_550_100, is_bot: false, first_name: 'Ann', last_name: 'Lee', username: 'annlee', language_code: 'en' }
const privately = { id: 5_550_100, first_name: 'Ann', last_name: 'Lee', username: 'annlee', type: 'private' }
const family = { id: -1_001_234_567_890, title: 'Family', type: 'supergroup' }
const message = { message_id: 1_365, from: ann, chat: privately, date: 1_441_645_532, text: 'Help, please' }

function update(content: Record<string, unknown>, { token = secretToken, sent }: { token?: string; sent?: string } = {}) {
  const body = sent ?? JSON.stringify({ update_id: 10_000, ...content })
  return requestOf(body, { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': token })
}
const messages = (content: Record<string, unknown>) => adapter.receive(update(content), 0).messages

describe('telegramBot', () => {
  it('[V3.4] maps a private message: the sender is a numeric id, verified, and never a name', () => {
    expect(adapter.receive(update({ message }), 0)).toEqual({
      messages: [{
        providerId: '5550100:1365', sender: { address: '5550100', name: 'Ann Lee', verified: true }, conversation: '5550100', text: 'Help, please',
        sentAt: new Date(1_441_645_532_000),
      }],
    })
  })

  it('[V3.4] keeps the sender and the chat of a group apart, and the group that writes as itself from its members', () => {
    expect(messages({ message: { ...message, chat: family } })).toMatchObject([{ sender: { address: '5550100' }, conversation: '-1001234567890', providerId: '-1001234567890:1365' }])
    const anonymous = { ...message, chat: family, from: { id: 1_087_968_824, is_bot: true, first_name: 'Group', username: 'GroupAnonymousBot' }, sender_chat: family }
    const [said] = messages({ message: anonymous })
    expect(said).toMatchObject({ sender: { address: '-1001234567890', name: 'Family' } })
    expect(said?.automatic).toBeUndefined()
    const topic = { ...message, chat: { ...family, is_forum: true }, is_topic_message: true, message_thread_id: 42 }
    expect(messages({ message: topic })).toMatchObject([{ conversation: '-1001234567890:42' }])
  })

  it('maps posts of a channel, captions and attachments', () => {
    const channel = { id: -1_009_876_543_210, title: 'Alerts', type: 'channel' }
    expect(messages({ channel_post: { message_id: 7, chat: channel, sender_chat: channel, date: 1_441_645_532, text: 'Disk full' } })).toMatchObject([
      { sender: { address: '-1009876543210', name: 'Alerts', verified: true }, conversation: '-1009876543210', text: 'Disk full' },
    ])
    const { text: _, ...untold } = message
    const photo = [{ file_id: 'a', file_unique_id: 'a', width: 90, height: 67, file_size: 1_200 }, { file_id: 'b', file_unique_id: 'b', width: 800, height: 600, file_size: 90_000 }]
    expect(messages({ message: { ...untold, photo, caption: 'The letter' } })).toMatchObject([{ text: 'The letter', attachments: [{ mediaType: 'image/jpeg', size: 90_000 }] }])
    const file = { file_id: 'c', file_unique_id: 'c', file_name: 'bill.pdf', mime_type: 'application/pdf', file_size: 5 }
    expect(messages({ message: { ...untold, document: file } })).toMatchObject([{ text: '', attachments: [{ filename: 'bill.pdf', mediaType: 'application/pdf', size: 5 }] }])
    expect(messages({ message: { ...untold, animation: file, document: file } })[0]?.attachments).toHaveLength(1)
  })

  it('[V3.1] rejects a request without the secret token, with another, with a part of it, twice, or too large', () => {
    const code = (request: { headers: Headers; body: string }) => codeOf(() => adapter.receive(request, 0))
    expect(code(update({ message }))).toBe('accepted')
    for (const token of ['', 'another-token-of-the-bot!', secretToken.slice(0, -1), `${secretToken}x`, secretToken.toUpperCase()])
      expect(code(update({ message }, { token }))).toBe('unauthorized')
    expect(code(requestOf(JSON.stringify({ update_id: 1, message }), {}))).toBe('unauthorized')
    const twice = update({ message })
    twice.headers.append('x-telegram-bot-api-secret-token', secretToken)
    expect(code(twice)).toBe('unauthorized')
    expect(code(update({ message: { ...message, text: 'x'.repeat(1_100_000) } }))).toBe('too_large')
    // Before the body is read.
    expect(code(update({}, { token: 'another-token-of-the-bot!', sent: '{' }))).toBe('unauthorized')
  })

  it('[V3.3] maps no edits, reactions, joins or unknown updates, and marks what the bot itself wrote', () => {
    for (const other of [
      { edited_message: message }, { edited_channel_post: message }, { callback_query: { id: '1', from: ann, data: 'x' } }, { message_reaction: {} }, { my_chat_member: {} }, {},
      { something_new: message },
    ]) expect(messages(other)).toEqual([])
    const { text: _, ...untold } = message
    for (const service of [{ new_chat_members: [ann] }, { pinned_message: message }, { location: { latitude: 1, longitude: 2 } }]) expect(messages({ message: { ...untold, ...service } })).toEqual([])
    const bot = { id: 110_201_543, is_bot: true, first_name: 'Guide' }
    expect(messages({ message: { ...message, from: bot } })).toMatchObject([{ own: true, automatic: true }])
    expect(messages({ message: { ...message, via_bot: bot } })).toMatchObject([{ own: true }])
    const other = messages({ message: { ...message, from: { ...bot, id: 99 } } })
    expect(other).toMatchObject([{ automatic: true }])
    expect(other[0]?.own).toBeUndefined()
  })

  it('[V3.2] an update that is sent again is the same message', () => {
    expect(messages({ message })[0]?.providerId).toBe(messages({ message, update_id: 10_001 })[0]?.providerId)
  })

  it('[V3.9] rejects a body that is no update, and cuts a text that is too long', () => {
    const code = (content: Record<string, unknown>, sent?: string) => codeOf(() => adapter.receive(update(content, sent === undefined ? {} : { sent }), 0))
    expect(code({}, '{"update_id": 1, "mess')).toBe('invalid_argument')
    expect(code({}, '[1]')).toBe('invalid_argument')
    expect(code({ update_id: '1' })).toBe('invalid_argument')
    for (const field of ['chat', 'message_id', 'date']) expect(code({ message: { ...message, [field]: 'x' } })).toBe('invalid_argument')
    expect(code({ message: { ...message, from: { id: 1.5 } } })).toBe('invalid_argument')
    const [long] = messages({ message: { ...message, text: 'é'.repeat(70_000) } })
    expect(long).toMatchObject({ truncated: true, text: 'é'.repeat(65_536) })
  })

  it('rejects options that it does not know or that are no token', () => {
    expect(codeOf(() => telegramBot({ secretToken, token: botToken } as never))).toBe('unsupported_option')
    expect(codeOf(() => telegramBot({ secretToken: 'short' }))).toBe('invalid_argument')
    expect(codeOf(() => telegramBot({ secretToken, botToken: 'bot' }))).toBe('invalid_argument')
    expect(telegramBot({ secretToken }).send).toBeUndefined()
  })
})

describe('a reply through Telegram', () => {
  const reply = (more: Partial<ChannelReply> = {}): ChannelReply => ({ to: '5550100', text: 'On my way', idempotencyKey: 'k1', abortSignal: new AbortController().signal, ...more })

  it('is sent to the chat or its topic, as plain text without previews', async () => {
    const { url: baseUrl, requests } = await localProvider(() => ({ status: 200, body: { ok: true, result: { message_id: 9, chat: privately, date: 1 } } }))
    const { send } = telegramBot({ secretToken, botToken, baseUrl })
    expect(await send?.(reply())).toEqual({ providerId: '5550100:9' })
    await send?.(reply({ conversation: '-1001234567890:42' }))
    expect(requests[0]?.path).toBe(`/bot${botToken}/sendMessage`)
    expect(requests.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      { chat_id: 5_550_100, text: 'On my way', link_preview_options: { is_disabled: true } },
      { chat_id: -1_001_234_567_890, message_thread_id: 42, text: 'On my way', link_preview_options: { is_disabled: true } },
    ])
    expect(await send?.(reply({ to: '@annlee' })).catch((error: unknown) => error)).toMatchObject({ code: 'invalid_argument' })
  })

  it('[V3.10] fails with the time to wait, and without the token that is in its URL', async () => {
    const answers = [
      { status: 429, body: { ok: false, error_code: 429, description: 'Too Many Requests: retry after 5', parameters: { retry_after: 5 } } },
      { status: 403, body: { ok: false, error_code: 403, description: 'Forbidden: bot was blocked by the user' } }, 'break' as const,
    ]
    const { url: baseUrl } = await localProvider(() => answers.shift() ?? 'break')
    const { send } = telegramBot({ secretToken, botToken, baseUrl })
    const failure = async () => send?.(reply()).catch((error: unknown) => error)
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: true, details: { retryAfterMs: 5_000, maybeSent: false } })
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: false, details: { reason: 'Forbidden: bot was blocked by the user' } })
    const broken = await failure()
    expect(broken).toMatchObject({ code: 'unreachable', retryable: true, details: { maybeSent: true } })
    expect(`${JSON.stringify(broken)} ${String(broken)} ${String((broken as Error).cause)}`).not.toContain(botToken)
    expect(await telegramBot({ secretToken, botToken, baseUrl: 'http://127.0.0.1:9' }).send?.(reply()).catch((error: unknown) => error)).toMatchObject({ code: 'unreachable' })
  })
})
