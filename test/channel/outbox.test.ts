import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { slackEvents, standardWebhook, telegramBot, twilioSms, type ChannelAdapter, type ChannelRequest } from '../../src/channel/index.ts'
import { twilioSignature } from '../../src/channel/adapters/twilio-sms.ts'
import { HeedError, type Logger } from '../../src/index.ts'
import { virtualClock } from '../../src/testing/index.ts'
import { verifyStandardWebhook } from '../../src/sources/signature.ts'
import { secret, standard } from '../sources/signing.ts'
import { gate, soon } from '../thread/said.ts'
import { answering, said, through } from './answering.ts'
import { localProvider, requestOf, type LocalAnswer, type SentRequest } from './local-provider.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-outbox-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const authToken = 'twilio-auth-token-0000'
const accountSid = 'AC00000000000000000000000000000001'
const botToken = '110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw'
const slackToken = 'xoxb-not-a-real-token-0000'
const tokens = [authToken, botToken, slackToken, secret]

interface Provider {
  adapter(url: string): ChannelAdapter
  /** A signed request with a message. */
  inbound(id: number, now: number): ChannelRequest
  /** The answer to a reply that was sent, and the provider's id of it. */
  success: LocalAnswer
  sentId: string | undefined
  /** The text and the place of a reply in its request. */
  read(request: SentRequest): unknown
}

const webhookUrl = 'https://agents.example.org/sms'
const providers: Record<string, Provider> = {
  Twilio: {
    adapter: (baseUrl) => twilioSms({ authToken, url: webhookUrl, accountSid, from: '+15550100999', baseUrl }),
    inbound(id) {
      const parameters: Array<[string, string]> = [['MessageSid', `SM${String(id).padStart(32, '0')}`], ['AccountSid', accountSid], ['From', '+15550100123'], ['To', '+15550100999'], ['Body', 'Hello']]
      const signature = twilioSignature(authToken, webhookUrl, parameters).toString('base64')
      return requestOf(new URLSearchParams(parameters).toString(), { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': signature })
    },
    success: { status: 201, body: { sid: 'SM0000000000000000000000000000abcd' } },
    sentId: 'SM0000000000000000000000000000abcd',
    read: ({ body }) => [new URLSearchParams(body).get('To'), new URLSearchParams(body).get('Body')],
  },
  Telegram: {
    adapter: (baseUrl) => telegramBot({ secretToken: 'a-secret-token_of-the-bot', botToken, baseUrl }),
    inbound(id, now) {
      const message = { message_id: id, from: { id: 5_550_100, is_bot: false, first_name: 'Ann' }, chat: { id: -100, type: 'group' }, date: Math.floor(now / 1_000), text: 'Hello' }
      return requestOf(JSON.stringify({ update_id: id, message }), { 'x-telegram-bot-api-secret-token': 'a-secret-token_of-the-bot' })
    },
    success: { status: 200, body: { ok: true, result: { message_id: 77 } } },
    sentId: '-100:77',
    read: ({ body }) => [(JSON.parse(body) as { chat_id: number }).chat_id, (JSON.parse(body) as { text: string }).text],
  },
  Slack: {
    adapter: (baseUrl) => slackEvents({ signingSecret: 'a-signing-secret-of-slack', botToken: slackToken, baseUrl }),
    inbound(id, now) {
      const event = { type: 'message', channel: 'C0ALERTS1', user: 'U061F7AUR', text: 'Hello', ts: `1699999990.00000${id}`, team: 'T061EG9R6' }
      const body = JSON.stringify({ type: 'event_callback', team_id: 'T061EG9R6', event })
      const at = String(Math.floor(now / 1_000))
      const signature = createHmac('sha256', 'a-signing-secret-of-slack').update(`v0:${at}:${body}`).digest('hex')
      return requestOf(body, { 'x-slack-request-timestamp': at, 'x-slack-signature': `v0=${signature}` })
    },
    success: { status: 200, body: { ok: true, channel: 'C0ALERTS1', ts: '1700000001.000100' } },
    sentId: 'C0ALERTS1:1700000001.000100',
    read: ({ body }) => [(JSON.parse(body) as { channel: string }).channel, (JSON.parse(body) as { text: string }).text],
  },
  'Standard Webhooks': {
    adapter: (url) => standardWebhook({ secret, replies: { url: `${url}/replies?to=x` } }),
    inbound(id, now) {
      const { headers, body } = standard(JSON.stringify({ sender: { address: 'user-7', verified: true }, text: 'Hello' }), { id: `msg-${id}`, at: now })
      return requestOf(body as string, headers as Record<string, string>)
    },
    success: { status: 202, body: '' },
    sentId: undefined,
    read({ body, headers, path }) {
      expect(path).toBe('/replies?to=x')
      verifyStandardWebhook(new Headers(headers as Record<string, string>), body, [secret], Date.now())
      const { to, text } = JSON.parse(body) as { to: string; text: string }
      return [to, text]
    },
  },
}
const places: Record<string, unknown> = { Twilio: '+15550100123', Telegram: -100, Slack: 'C0ALERTS1', 'Standard Webhooks': 'user-7' }

/** What is logged. */
function keeper(): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  return { logger: { debug: log, info: log, warn: log, error: log }, lines }
}

describe.each(Object.entries(providers))('the outbox through %s', (name, provider) => {
  it('[V3.16] [V3.17] [V3.21] sends a reply until the provider accepts it: after 429 when it says, after 5xx, a break and silence later', async () => {
    const clock = virtualClock()
    const { logger, lines } = keeper()
    const answers: Array<LocalAnswer | 'break' | 'silence'> = [
      { status: 429, body: {}, headers: { 'retry-after': '90' } }, { status: 503, body: `<html>${tokens.join(' ')}` }, 'break', 'silence', provider.success,
    ]
    const { url, requests } = await localProvider(() => answers.shift() ?? 'break')
    const { channel, model, heed, replies } = through(provider.adapter(url), { clock, logger })
    const reply = async () => (await replies())[0]
    const failed = async (attempts: number, error: object) => {
      await soon(reply).toMatchObject({ state: 'pending', attempts, error: expect.any(Object) as object })
      expect((await reply())?.error).toEqual(error)
    }
    await channel.receive(provider.inbound(1, clock.now()))
    await channel.receive(provider.inbound(1, clock.now()))
    await failed(1, { code: 'provider_error', status: 429, maybeSent: false })
    await clock.advance(89_999)
    expect(requests.length).toBe(1)
    await clock.advance(1)
    await failed(2, { code: 'provider_error', status: 503, maybeSent: true })
    await clock.advance(4_000)
    await failed(3, { code: 'unreachable', maybeSent: true })
    await clock.advance(8_000)
    await soon(() => requests.length).toBe(4)
    await clock.advance(30_000)
    await failed(4, { code: 'timeout', maybeSent: true })
    await clock.advance(16_000)
    await soon(reply).toMatchObject({ state: 'sent', attempts: 5, text: 'Fine.' })
    const { providerId } = (await reply()) ?? {}
    expect(providerId).toBe(provider.sentId)
    expect(requests.map(provider.read)).toEqual(Array.from({ length: 5 }, () => [places[name], 'Fine.']))
    expect(model.callCount).toBe(1)
    await heed.close()
    expect(lines.join('\n')).toMatch(/a reply could not be sent/)
    for (const hidden of [...tokens, 'Fine.', 'Hello']) expect(lines.join('\n')).not.toContain(hidden)
  })

  it('[V3.17] a reply that the provider refuses permanently is dead at once, and sent again when a caller wants it', async () => {
    const answers: LocalAnswer[] = [{ status: 400, body: { ok: false, code: 21_610, error: 'is_archived', description: 'Bad Request' } }, provider.success]
    const { url, requests } = await localProvider(() => answers.shift() ?? 'break')
    const { channel, heed, replies } = through(provider.adapter(url))
    await channel.receive(provider.inbound(1, Date.now()))
    await soon(async () => (await replies())[0]).toMatchObject({ state: 'dead', attempts: 1, error: { code: 'provider_error', status: 400, maybeSent: false } })
    const { replies: [dead] } = await heed.channels.listReplies({ state: 'dead' })
    const id = dead?.id ?? ''
    expect(await heed.channels.retryReply({ id })).toMatchObject({ state: 'pending', attempts: 0 })
    await soon(async () => (await heed.channels.getReply({ id }))?.state).toBe('sent')
    expect(requests.map(provider.read)).toEqual([[places[name], 'Fine.'], [places[name], 'Fine.']])
    expect(await heed.channels.retryReply({ id, resourceId: 'ada' })).toMatchObject({ state: 'sent' })
    expect(requests.length).toBe(2)
  })
})

describe('the outbox', () => {
  it('[V3.13] [V3.16] two Heeds on one database answer each message with one run, and send each reply once', async () => {
    const file = join(folder, 'shared.db')
    const both = [answering({ file }), answering({ file })] as const
    const messages = Array.from({ length: 12 }, (_, nth) => said(String(nth), `text ${nth}`, { conversation: `room ${nth % 3}` }))
    await Promise.all(both.flatMap(({ heed, adapter }) => [heed.start(), ...messages.map((message) => adapter.deliver(message))]))
    await soon(async () => {
      await Promise.all(both.map(({ heed }) => heed.tick()))
      return new Set(await both[0].states())
    }).toEqual(new Set(['sent Fine.']))
    const sent = both.flatMap((one) => one.sent)
    expect([(await both[1].replies()).length, sent.length, new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size]).toEqual([12, 12, 12])
    const runs = await both[0].agent.threads().store.listRuns({ resourceId: 'ada', limit: 100 })
    expect(new Set(runs.map(({ runId }) => runId))).toEqual(new Set((await both[1].replies()).map(({ inboundId }) => inboundId)))
  })

  it('[V3.17] gives up after twelve attempts, for about an hour', async () => {
    const clock = virtualClock()
    const start = clock.now()
    const { heed, adapter, sent, replies } = answering({ clock, send: () => Promise.reject(new Error('The line is cut: Fine.')) })
    await adapter.deliver(said('1'))
    await soon(async () => (await replies())[0]?.attempts).toBe(1)
    for (let reply = (await replies())[0]; reply?.dueAt; reply = (await replies())[0]) await clock.advance(reply.dueAt.getTime() - clock.now())
    const [dead] = await replies()
    expect(dead).toMatchObject({ state: 'dead', attempts: 12, error: { code: 'send_failed' } })
    expect((clock.now() - start) / 60_000).toBeCloseTo(68.2, 0)
    expect([sent.length, new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size]).toEqual([12, 1])
    await heed.channels.retryReply({ id: dead?.id ?? '' })
    await soon(() => sent.length).toBe(13)
  })

  it('[V3.16] a reply is as long as the provider allows, and says that it was cut', async () => {
    const { url, requests } = await localProvider(() => providers.Twilio?.success ?? 'break')
    const adapter = twilioSms({ authToken, url: webhookUrl, accountSid, from: '+15550100999', baseUrl: url })
    const { channel, replies } = through(adapter, {}, () => `${'x'.repeat(1_598)}😀 and so on`)
    await channel.receive(providers.Twilio!.inbound(1, Date.now()))
    await soon(async () => (await replies())[0]).toMatchObject({ state: 'sent', truncated: true })
    expect(new URLSearchParams(requests[0]?.body).get('Body')).toBe(`${'x'.repeat(1_598)}…`)
  })

  it('[V3.17] an adapter that never ends delays no other reply, and is asked again', async () => {
    const clock = virtualClock()
    const line = gate()
    const { adapter, states, replies } = answering({
      clock, script: ({ index }) => `Answer ${index}.`,
      send: ({ text }) => (text.endsWith('0.') ? line.promise.then(() => ({})) : Promise.resolve({})),
    })
    onTestFinished(line.open)
    await adapter.deliver(said('1'), said('2'))
    await soon(() => states()).toEqual(['pending Answer 0.', 'sent Answer 1.'])
    await clock.advance(30_000)
    await soon(async () => (await replies())[0]).toMatchObject({ state: 'pending', attempts: 1, error: { code: 'timeout', maybeSent: true } })
  })

  it('[V3.17] an error that is not retryable is final; one of the program is tried again', async () => {
    const clock = virtualClock()
    let number = 0
    const { adapter, states, replies } = answering({
      clock,
      send: async () => {
        if (++number === 1) throw new HeedError('invalid_argument', 'No such number.')
        if (number === 2) throw new Error('unknown')
        return { providerId: '' }
      },
    })
    await adapter.deliver(said('1'))
    await soon(() => states()).toEqual(['dead Fine.'])
    await adapter.deliver(said('2'))
    await soon(async () => (await replies())[1]?.error).toEqual({ code: 'send_failed' })
    await clock.advance(2_000)
    await soon(() => states()).toEqual(['dead Fine.', 'sent Fine.'])
    expect((await replies())[1]?.providerId).toBeUndefined()
  })

  it('[V3.16] a close waits for a reply that is being sent', async () => {
    const line = gate()
    const file = join(folder, 'closing.db')
    const { heed, adapter, sent } = answering({ file, send: () => line.promise.then(() => ({})) })
    await adapter.deliver(said('1'))
    await soon(() => sent.length).toBe(1)
    const closed = heed.close()
    line.open()
    await closed
    const later = answering({ file })
    await later.heed.start()
    expect([await later.states(), sent.length, later.sent]).toEqual([['sent Fine.'], 1, []])
  })

  it('[V3.16] a close that cuts a reply leaves it to the next process, at once, with the same id and without a used attempt', async () => {
    const file = join(folder, 'closed.db')
    const clock = virtualClock()
    const first = answering({ file, clock, send: () => new Promise(() => {}) })
    await first.adapter.deliver(said('1'))
    await soon(() => first.sent.length).toBe(1)
    const closed = first.heed.close()
    await clock.advance(5_000)
    await closed
    const second = answering({ file, clock, script: () => 'Another answer.' })
    await second.heed.start()
    await soon(() => second.states()).toEqual(['sent Fine.'])
    expect([second.sent, second.model.callCount]).toEqual([first.sent, 0])
    expect((await second.replies())[0]?.attempts).toBe(1)
  })

  it('[G1.7] lists by state, channel, thread and resource, in pages; unknown ids and names are rejected', async () => {
    const { heed, adapter, states, replies } = answering()
    await adapter.deliver(said('1'), said('2', 'x', { conversation: 'room' }), said('3', 'x', { automatic: true }))
    await soon(() => states()).toEqual(['sent Fine.', 'sent Fine.', 'none automatic'])
    const all = await replies()
    const ids = async (query: object) => (await heed.channels.listReplies(query)).replies.map(({ id }) => all.findIndex((one) => one.id === id))
    expect(await ids({ state: 'sent' })).toEqual([0, 1])
    expect(await ids({ threadId: all[1]?.threadId })).toEqual([1])
    expect([await ids({ channelId: 'other' }), await ids({ channelId: 'phone', resourceId: 'eve' })]).toEqual([[], []])
    expect(await heed.channels.listReplies({ limit: 1 })).toMatchObject({ replies: [{ id: all[0]?.id }], more: true })
    expect(await ids({ after: all[0]?.seq })).toEqual([1, 2])
    expect(await heed.channels.getReply({ id: 'x' })).toBeNull()
    expect(await heed.channels.getReply({ id: all[0]?.id ?? '', resourceId: 'eve' })).toBeNull()
    await expect(heed.channels.retryReply({ id: 'x' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(heed.channels.listReplies({ state: 'lost' as never })).rejects.toThrow('state must be one of')
    await expect(heed.channels.listReplies({ limit: 0 })).rejects.toThrow('limit')
  })
})
