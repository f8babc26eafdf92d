import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { codeOf, localProvider, requestOf, type LocalAnswer } from '../../../test/channel/local-provider.ts'
import type { ChannelReply } from '../adapter.ts'
import { twilioSignature, twilioSms } from './twilio-sms.ts'

const authToken = '9f8e7d6c5b4a39281706f5e4d3c2b1a0'
const accountSid = 'AC00112233445566778899aabbccddeeff'
const url = 'https://example.org/api/channels/texts?tenant=7'
const adapter = twilioSms({ authToken, url, accountSid, from: '+15550100999' })

/** An inbound message as Twilio documents it. */
const inbound: Record<string, string> = {
  ToCountry: 'US', ToState: 'CA', SmsMessageSid: 'SM3f1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c', NumMedia: '0', ToCity: '', FromZip: '94103', SmsSid: 'SM3f1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c',
  FromState: 'CA', SmsStatus: 'received', FromCity: 'SAN FRANCISCO', Body: 'Your code is 482913. Don’t share it & stay safe=+', FromCountry: 'US', To: '+15550100999', ToZip: '',
  NumSegments: '1', MessageSid: 'SM3f1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c', AccountSid: accountSid, From: '+15550100123', ApiVersion: '2010-04-01',
}

function form(parameters: Record<string, string> | Array<[string, string]>, { to = url, token = authToken, sent }: { to?: string; token?: string; sent?: string } = {}) {
  const pairs = Array.isArray(parameters) ? parameters : Object.entries(parameters)
  const signature = twilioSignature(token, to, pairs).toString('base64')
  return requestOf(sent ?? new URLSearchParams(pairs).toString(), {
    'content-type': 'application/x-www-form-urlencoded; charset=UTF-8', 'x-twilio-signature': signature, 'i-twilio-idempotency-token': 'e2f1',
  })
}

function json(value: unknown, { to = url, sent }: { to?: string; sent?: string } = {}) {
  const body = JSON.stringify(value)
  const signed = `${to}&bodySHA256=${createHash('sha256').update(body).digest('hex')}`
  return requestOf(sent ?? body, { 'content-type': 'application/json', 'x-twilio-signature': twilioSignature(authToken, signed, []).toString('base64') })
}

const event = {
  specversion: '1.0', type: 'com.twilio.messaging.inbound-message.received', source: accountSid, id: 'EZ00000000000000000000000000000001',
  data: { messageSid: 'SM00000000000000000000000000000001', accountSid, timestamp: '2026-01-02T03:04:05.000Z', from: '+15550100123', to: '+15550100999', body: 'Ahoy', numMedia: 2 },
}

describe('twilioSms', () => {
  it('[V3.1] computes the signatures that Twilio publishes', () => {
    const at = 'https://mycompany.com/myapp.php?foo=1&bar=2'
    const call = (from: string) => Object.entries({ CallSid: 'CA1234567890ABCDE', Caller: from, Digits: '1234', From: from, To: '+18005551212' })
    expect(twilioSignature('12345', at, call('+14158675309')).toString('base64')).toBe('RSOYDt4T1cUTdK1PDd93/VVr8B8=')
    expect(twilioSignature('12345', at, call('+12349013030')).toString('base64')).toBe('0/KCTR6DLpKmkAf8muzZqo1nDgQ=')
    const repeated: Array<[string, string]> = [['Sid', 'CA123'], ['SidAccount', 'AC123'], ['Digits', '5678'], ['Digits', '1234'], ['Digits', '1234']]
    expect(twilioSignature('12345', at, repeated).toString('base64')).toBe('IK+Dwps556ElfBT0I3Rgjkr1wJU=')
  })

  it('[V3.4] maps an inbound message, whose E.164 number is verified', () => {
    expect(adapter.receive(form(inbound), 0)).toEqual({
      messages: [{
        providerId: 'SM3f1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c', sender: { address: '+15550100123', verified: true }, text: 'Your code is 482913. Don’t share it & stay safe=+',
      }],
      answer: { status: 200, body: '<Response></Response>', headers: { 'content-type': 'text/xml' } },
    })
  })

  it('[V3.4] does not verify alphanumeric senders, short codes, or numbers that are not E.164', () => {
    for (const From of ['STRIPE', 'Mum', '72975', '+1 5550100123', '15550100123', '+0155501001', '＋15550100123', '+1555010012３']) {
      const [message] = adapter.receive(form({ ...inbound, From }), 0).messages
      expect(message?.sender).toEqual({ address: From, verified: false })
    }
  })

  it('counts media, and maps the events of Event Streams, which are JSON', () => {
    const media = { ...inbound, NumMedia: '2', MediaContentType0: 'image/jpeg', MediaUrl0: 'https://api.twilio.com/m/1', MediaContentType1: 'text/vcard' }
    expect(adapter.receive(form(media), 0).messages[0]?.attachments).toEqual([{ mediaType: 'image/jpeg' }, { mediaType: 'text/vcard' }])
    expect(adapter.receive(json([event, { ...event, type: 'com.twilio.messaging.message.delivered' }]), 0).messages).toEqual([{
      providerId: 'SM00000000000000000000000000000001', sender: { address: '+15550100123', verified: true }, text: 'Ahoy', attachments: [{}, {}],
      sentAt: new Date('2026-01-02T03:04:05.000Z'),
    }])
  })

  it('[V3.1] rejects what is forged, changed, truncated, signed for another URL, unsigned, signed twice or too large', () => {
    const code = (request: { headers: Headers; body: string }) => codeOf(() => adapter.receive(request, 0))
    const good = form(inbound)
    expect(code(good)).toBe('accepted')
    expect(code(form(inbound, { token: 'another-token-of-32-characters!!' }))).toBe('unauthorized')
    expect(code({ ...good, body: good.body.replace('482913', '482914') })).toBe('unauthorized')
    expect(code({ ...good, body: good.body.slice(0, -10) })).toBe('unauthorized')
    expect(code({ ...good, body: `${good.body}&Extra=1` })).toBe('unauthorized')
    expect(code(form(inbound, { to: 'https://example.org/api/channels/texts' }))).toBe('unauthorized')
    expect(code(form(inbound, { to: 'http://example.org/api/channels/texts?tenant=7' }))).toBe('unauthorized')
    expect(code(requestOf(good.body, { 'content-type': 'application/x-www-form-urlencoded' }))).toBe('unauthorized')
    const twice = new Headers(good.headers)
    twice.append('x-twilio-signature', good.headers.get('x-twilio-signature') ?? '')
    expect(code({ headers: twice, body: good.body })).toBe('unauthorized')
    expect(code(form({ ...inbound, Body: 'x'.repeat(1_100_000) }))).toBe('too_large')
    expect(code(form(Array.from({ length: 2_000 }, (_, at) => [`P${at}`, '1'] as [string, string])))).toBe('unauthorized')
    expect(code(json(event))).toBe('accepted')
    expect(code(json(event, { sent: JSON.stringify({ ...event, id: 'EZ2' }) }))).toBe('unauthorized')
    expect(code(json(event, { to: 'https://example.org/other?a=b' }))).toBe('unauthorized')
    // Signed as a form, sent as JSON, and the other way round.
    expect(code({ ...good, headers: new Headers({ ...Object.fromEntries(good.headers), 'content-type': 'application/json' }) })).toBe('unauthorized')
    expect(code({ ...json(event), headers: new Headers({ ...Object.fromEntries(json(event).headers), 'content-type': 'application/x-www-form-urlencoded' }) })).toBe('unauthorized')
    expect(code(form({ ...inbound, AccountSid: 'ACffffffffffffffffffffffffffffffff' }))).toBe('unauthorized')
  })

  it('[V3.1] accepts URLs with and without their port, and every token during a rotation', () => {
    const rotating = twilioSms({ authToken: [authToken, 'the-token-before-of-32-characters'], url: 'https://example.org/sms' })
    for (const to of ['https://example.org/sms', 'https://example.org:443/sms'])
      for (const token of [authToken, 'the-token-before-of-32-characters']) expect(rotating.receive(form(inbound, { to, token }), 0).messages).toHaveLength(1)
    expect(codeOf(() => rotating.receive(form(inbound, { to: 'https://example.org:8443/sms' }), 0))).toBe('unauthorized')
    const port = twilioSms({ authToken, url: 'https://example.org:8443/sms' })
    for (const to of ['https://example.org/sms', 'https://example.org:8443/sms']) expect(port.receive(form(inbound, { to }), 0).messages).toHaveLength(1)
  })

  it('[V3.2] a repeated request is the same message', () => {
    const ids = [1, 2, 3].map((now) => adapter.receive(form(inbound), now).messages[0]?.providerId)
    expect(new Set(ids).size).toBe(1)
  })

  it('[V3.3] maps no receipts, calls or messages of other services, and marks what this number sent itself', () => {
    const messages = (parameters: Record<string, string>) => adapter.receive(form(parameters), 0).messages
    expect(messages({ ...inbound, MessageStatus: 'delivered', SmsStatus: 'delivered' })).toEqual([])
    expect(messages({ ...inbound, SmsStatus: 'sent' })).toEqual([])
    expect(messages({ MessageSid: 'SM00000000000000000000000000000002', MessageStatus: 'delivered', To: '+15550100123', From: '+15550100999', AccountSid: accountSid })).toEqual([])
    expect(messages({ CallSid: 'CA1234567890ABCDE', From: '+15550100123', AccountSid: accountSid })).toEqual([])
    expect(messages({ ...inbound, From: 'whatsapp:+15550100123' })).toEqual([])
    expect(messages({ ...inbound, From: '+15550100999' })).toMatchObject([{ own: true }])
  })

  it('[V3.9] rejects a signed message without a valid id or sender, and with a repeated field', () => {
    const code = (parameters: Record<string, string> | Array<[string, string]>) => codeOf(() => adapter.receive(form(parameters), 0))
    expect(code({ ...inbound, MessageSid: 'SM1' })).toBe('invalid_argument')
    expect(code({ ...inbound, From: '' })).toBe('invalid_argument')
    expect(code({ ...inbound, NumMedia: '-1' })).toBe('invalid_argument')
    expect(code([...Object.entries(inbound), ['From', '+15550100666']])).toBe('invalid_argument')
    expect(code({ ...inbound, NumMedia: '5000' })).toBe('accepted')
  })

  it('rejects options that it does not know or that are no account, number or URL', () => {
    const code = (options: object) => codeOf(() => twilioSms({ authToken, url, ...options }))
    expect(code({})).toBe('accepted')
    expect(code({ autToken: 'x' })).toBe('unsupported_option')
    for (const wrong of [{ authToken: 'short' }, { url: '/sms' }, { url: 'ftp://x/y' }, { accountSid: 'AC1' }, { from: 'STRIPE' }, { baseUrl: 'http://api.example.org' }])
      expect(code(wrong)).toBe('invalid_argument')
  })
})

describe('a reply through Twilio', () => {
  const reply = (more: Partial<ChannelReply> = {}): ChannelReply => ({ to: '+15550100123', text: 'Thanks & bye', idempotencyKey: 'k1', abortSignal: new AbortController().signal, ...more })

  it('is posted with basic authentication, from the number or the messaging service', async () => {
    const { url: baseUrl, requests } = await localProvider(() => ({ status: 201, body: { sid: 'SM00000000000000000000000000000002', status: 'queued' } }))
    const service = 'MG00000000000000000000000000000001'
    expect(await twilioSms({ authToken, url, accountSid, from: '+15550100999', baseUrl }).send?.(reply())).toEqual({ providerId: 'SM00000000000000000000000000000002' })
    await twilioSms({ authToken, url, accountSid, from: service, baseUrl }).send?.(reply())
    expect(requests[0]).toMatchObject({ path: `/2010-04-01/Accounts/${accountSid}/Messages.json`, body: 'To=%2B15550100123&From=%2B15550100999&Body=Thanks+%26+bye' })
    expect(requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`)
    expect(new URLSearchParams(requests[1]?.body).get('MessagingServiceSid')).toBe(service)
    expect(twilioSms({ authToken, url }).send).toBeUndefined()
  })

  it('[V3.10] fails with whether it may be repeated and may have been sent, and without credentials', async () => {
    const elsewhere = await localProvider(() => ({ status: 201, body: { sid: 'SM1' } }))
    const answers: Array<LocalAnswer | 'break'> = [
      { status: 400, body: { code: 21_211, message: `Invalid 'To' ${authToken}` } }, { status: 429, body: {}, headers: { 'retry-after': '2' } },
      { status: 503, body: '<html>' }, { status: 302, body: '', headers: { location: elsewhere.url } }, 'break',
    ]
    const { url: baseUrl } = await localProvider(() => answers.shift() ?? 'break')
    const { send } = twilioSms({ authToken, url, accountSid, from: '+15550100999', baseUrl })
    const failure = async () => send?.(reply()).catch((error: unknown) => error)
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: false, details: { status: 400, reason: '21211', maybeSent: false } })
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: true, details: { status: 429, retryAfterMs: 2_000, maybeSent: false } })
    expect(await failure()).toMatchObject({ code: 'provider_error', retryable: true, details: { status: 503, maybeSent: true } })
    expect(await failure()).toMatchObject({ code: 'unreachable', retryable: true })
    // A redirect takes no credentials elsewhere.
    expect(elsewhere.requests).toEqual([])
    const broken = await failure()
    expect(broken).toMatchObject({ code: 'unreachable', retryable: true, details: { maybeSent: true } })
    expect(JSON.stringify(broken)).not.toContain(authToken)
    expect(await send?.(reply({ text: 'x'.repeat(1_601) })).catch((error: unknown) => error)).toMatchObject({ code: 'too_large', retryable: false })
    expect(await send?.(reply({ abortSignal: AbortSignal.abort() })).catch((error: unknown) => error)).toMatchObject({ code: 'aborted', details: { maybeSent: false } })
  })
})
