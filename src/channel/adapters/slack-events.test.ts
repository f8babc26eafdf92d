import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { codeOf, localProvider, requestOf } from '../../../test/channel/local-provider.ts'
import type { ChannelReply } from '../adapter.ts'
import { slackEvents, verifySlack } from './slack-events.ts'

const signingSecret = '8f742231b10e8888abcd99yyyzzz85a5'
const now = 1_700_000_000_000
const adapter = slackEvents({ signingSecret, botUserId: 'U0GUIDE' })

const event = {
  type: 'message', channel: 'C0ALERTS1', user: 'U061F7AUR', text: 'Is &lt;prod&gt; down?', ts: '1699999990.000200', event_ts: '1699999990.000200', channel_type: 'channel', team: 'T061EG9R6',
  client_msg_id: '3c9b1a2f-6d3b-4a33-9d0a-7f2d6a0c1b22',
}
const envelope = {
  token: 'XXYYZZ', team_id: 'T061EG9R6', context_team_id: 'T061EG9R6', api_app_id: 'A0FFV41KK', type: 'event_callback', event_id: 'Ev08MFMKH6', event_time: 1_699_999_990,
  authorizations: [{ enterprise_id: null, team_id: 'T061EG9R6', user_id: 'U0APPBOT', is_bot: true, is_enterprise_install: false }], is_ext_shared_channel: false, event,
}

function signed(body: string, { at = now, key = signingSecret, ...more }: { at?: number; key?: string; [header: string]: unknown } = {}) {
  const timestamp = String(Math.floor(at / 1_000))
  const signature = `v0=${createHmac('sha256', key).update(`v0:${timestamp}:${body}`).digest('hex')}`
  return requestOf(body, { 'content-type': 'application/json', 'x-slack-request-timestamp': timestamp, 'x-slack-signature': signature, ...(more as Record<string, string>) })
}
const receive = (value: unknown, more = {}) => adapter.receive(signed(JSON.stringify(value), more), now)
const messages = (changes: Record<string, unknown>) => receive({ ...envelope, event: { ...event, ...changes } }).messages

describe('slackEvents', () => {
  it('[V3.1] verifies the request that Slack publishes', () => {
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
    const headers = new Headers({ 'x-slack-request-timestamp': '1531420618', 'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503' })
    expect(() => verifySlack(headers, body, [signingSecret], 1_531_420_618_000)).not.toThrow()
    expect(codeOf(() => verifySlack(headers, `${body} `, [signingSecret], 1_531_420_618_000))).toBe('unauthorized')
  })

  it('[V3.4] maps a message: the sender is the id of a user of a team, verified', () => {
    expect(receive(envelope)).toEqual({
      messages: [{
        providerId: 'C0ALERTS1:1699999990.000200', sender: { address: 'T061EG9R6:U061F7AUR', verified: true }, conversation: 'C0ALERTS1', text: 'Is &lt;prod&gt; down?',
        sentAt: new Date(1_699_999_990_000),
      }],
    })
    // A guest of another team, in a shared channel.
    expect(messages({ user_team: 'T0OTHER', thread_ts: '1699999000.000100' })).toMatchObject([{ sender: { address: 'T0OTHER:U061F7AUR' }, conversation: 'C0ALERTS1:1699999000.000100' }])
    expect(messages({ subtype: 'file_share', files: [{ id: 'F1', name: 'log.txt', mimetype: 'text/plain', size: 12 }] })).toMatchObject([{ attachments: [{ filename: 'log.txt', mediaType: 'text/plain', size: 12 }] }])
  })

  it('[V3.1] rejects what is forged, changed, truncated, unsigned, signed twice, of another version or too large', () => {
    const body = JSON.stringify(envelope)
    const code = (request: { headers: Headers; body: string }) => codeOf(() => adapter.receive(request, now))
    const good = signed(body)
    expect(code(good)).toBe('accepted')
    expect(code(signed(body, { key: 'another-signing-secret-of-an-app' }))).toBe('unauthorized')
    expect(code({ ...good, body: body.replace('U061F7AUR', 'U061F7AUX') })).toBe('unauthorized')
    expect(code({ ...good, body: body.slice(0, -1) })).toBe('unauthorized')
    expect(code(requestOf(body, {}))).toBe('unauthorized')
    expect(code(signed(body, { 'x-slack-request-timestamp': String(now / 1_000 + 1) }))).toBe('unauthorized')
    expect(code(signed(body, { 'x-slack-request-timestamp': '0x5f' }))).toBe('unauthorized')
    expect(code(signed(body, { 'x-slack-signature': good.headers.get('x-slack-signature')?.replace('v0', 'v1') }))).toBe('unauthorized')
    for (const name of ['x-slack-signature', 'x-slack-request-timestamp']) {
      const twice = signed(body)
      twice.headers.append(name, twice.headers.get(name) ?? '')
      expect(code(twice)).toBe('unauthorized')
    }
    expect(code(signed(JSON.stringify({ ...envelope, pad: 'x'.repeat(1_100_000) })))).toBe('too_large')
    expect(code(signed('{', { key: 'another-signing-secret-of-an-app' }))).toBe('unauthorized')
  })

  it('[V3.2] rejects a request that is older or newer than five minutes; a retry within is the same message', () => {
    const body = JSON.stringify(envelope)
    for (const [away, code] of [[299_000, 'accepted'], [301_000, 'unauthorized'], [-299_000, 'accepted'], [-301_000, 'unauthorized']] as const)
      expect(codeOf(() => adapter.receive(signed(body, { at: now - away }), now))).toBe(code)
    const again = receive({ ...envelope, event_id: 'Ev08MFMKH6' }, { 'x-slack-retry-num': '1', 'x-slack-retry-reason': 'http_timeout' })
    expect(again).toEqual(receive(envelope))
    // The mention of the app in the same message.
    expect(receive({ ...envelope, event_id: 'Ev08OTHER', event: { ...event, type: 'app_mention' } }).messages[0]?.providerId).toBe('C0ALERTS1:1699999990.000200')
  })

  it('[V3.3] answers the handshake without a message, only if it is signed', () => {
    const hello = { token: 'XXYYZZ', challenge: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P', type: 'url_verification' }
    expect(receive(hello)).toEqual({ messages: [], answer: { status: 200, body: JSON.stringify({ challenge: hello.challenge }), headers: { 'content-type': 'application/json' } } })
    expect(codeOf(() => adapter.receive(signed(JSON.stringify(hello), { key: 'another-signing-secret-of-an-app' }), now))).toBe('unauthorized')
    expect(codeOf(() => receive({ ...hello, challenge: 7 }))).toBe('invalid_argument')
    expect(codeOf(() => receive({ ...hello, challenge: 'x'.repeat(5_000) }))).toBe('invalid_argument')
  })

  it('[V3.3] maps no edits, deletions, joins, reactions or unknown events', () => {
    for (const subtype of ['message_changed', 'message_deleted', 'channel_join', 'channel_topic', 'message_replied', 'something_new']) expect(messages({ subtype })).toEqual([])
    expect(messages({ hidden: true })).toEqual([])
    for (const other of [{ ...envelope, event: { type: 'reaction_added', user: 'U1' } }, { type: 'app_rate_limited' }, { type: 'something_new', event }, { ...envelope, event: undefined }])
      expect(receive(other).messages).toEqual([])
  })

  it('[V3.3] marks messages of the app itself, by its app id, its installation or its user', () => {
    expect(messages({ bot_id: 'B0SELF', app_id: 'A0FFV41KK', user: 'U0APPBOT' })).toMatchObject([{ own: true }])
    expect(messages({ bot_id: 'B0SELF', bot_profile: { id: 'B0SELF', app_id: 'A0FFV41KK', name: 'Guide' }, subtype: 'bot_message', user: undefined })).toMatchObject([{ own: true }])
    for (const user of ['U0APPBOT', 'U0GUIDE']) expect(messages({ user })).toMatchObject([{ own: true }])
    // Alerts of another app are messages: of a bot, under whatever name.
    const [alert] = messages({ bot_id: 'B0ALERT', app_id: 'A0OTHER', subtype: 'bot_message', user: undefined, username: 'Ann', text: '', attachments: [{ fallback: 'Disk full on db-1' }] })
    expect(alert).toMatchObject({ automatic: true, sender: { address: 'T061EG9R6:B0ALERT', verified: true }, text: 'Disk full on db-1' })
    expect(alert?.own).toBeUndefined()
    expect(alert?.sender.name).toBeUndefined()
  })

  it('[V3.9] rejects a signed message without a valid place, time, team or author', () => {
    for (const field of ['channel', 'ts', 'user']) {
      expect(codeOf(() => messages({ [field]: undefined }))).toBe('invalid_argument')
      expect(codeOf(() => messages({ [field]: 'x y' }))).toBe('invalid_argument')
    }
    expect(codeOf(() => messages({ team: 'x:y' }))).toBe('invalid_argument')
    expect(codeOf(() => adapter.receive(signed('[]'), now))).toBe('invalid_argument')
    expect(codeOf(() => adapter.receive(signed('{"type":'), now))).toBe('invalid_argument')
  })

  it('rejects options that it does not know or that are no token', () => {
    expect(codeOf(() => slackEvents({ signingSecret, token: 'x' } as never))).toBe('unsupported_option')
    expect(codeOf(() => slackEvents({ signingSecret: ['short'] }))).toBe('invalid_argument')
    expect(codeOf(() => slackEvents({ signingSecret, botToken: 'token' }))).toBe('invalid_argument')
    expect(adapter.send).toBeUndefined()
  })
})

describe('a reply through Slack', () => {
  const botToken = 'xoxb-not-a-real-token-0000'
  const reply = (more: Partial<ChannelReply> = {}): ChannelReply => ({ to: 'T061EG9R6:U061F7AUR', text: 'No <!channel> & fine', idempotencyKey: 'k1', abortSignal: new AbortController().signal, ...more })

  it('is posted literally into the thread, with the same id for the same key', async () => {
    const { url: baseUrl, requests } = await localProvider(() => ({ status: 200, body: { ok: true, channel: 'C0ALERTS1', ts: '1700000001.000100' } }))
    const { send } = slackEvents({ signingSecret, botToken, baseUrl })
    expect(await send?.(reply({ conversation: 'C0ALERTS1:1699999990.000200' }))).toEqual({ providerId: 'C0ALERTS1:1700000001.000100' })
    await send?.(reply())
    await send?.(reply({ idempotencyKey: 'k2' }))
    const sent = requests.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
    expect(requests[0]).toMatchObject({ path: '/chat.postMessage', headers: { authorization: `Bearer ${botToken}` } })
    expect(sent[0]).toMatchObject({ channel: 'C0ALERTS1', thread_ts: '1699999990.000200', text: 'No &lt;!channel&gt; &amp; fine', unfurl_links: false, unfurl_media: false })
    expect(sent[1]).toMatchObject({ channel: 'U061F7AUR' })
    expect(sent[0]?.client_msg_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(sent[0]?.client_msg_id).toBe(sent[1]?.client_msg_id)
    expect(sent[2]?.client_msg_id).not.toBe(sent[1]?.client_msg_id)
  })

  it('[V3.10] fails also where Slack answers 200', async () => {
    const answers = [
      { status: 200, body: { ok: false, error: 'channel_not_found' } }, { status: 200, body: { ok: false, error: 'ratelimited' } }, { status: 429, body: '', headers: { 'retry-after': '30' } },
      { status: 200, body: 'not JSON' }, { status: 200, body: { ok: false, error: botToken } },
    ]
    const { url: baseUrl } = await localProvider(() => answers.shift() ?? 'break')
    const { send } = slackEvents({ signingSecret, botToken, baseUrl })
    const failure = async () => send?.(reply()).catch((error: unknown) => error)
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: false, details: { reason: 'channel_not_found' } })
    expect(await failure()).toMatchObject({ retryable: true, details: { reason: 'ratelimited' } })
    expect(await failure()).toMatchObject({ retryable: true, details: { retryAfterMs: 30_000 } })
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: true, details: { maybeSent: true } })
    expect(JSON.stringify(await failure())).not.toContain(botToken)
  })
})
