import { describe, expect, it } from 'vitest'
import { codeOf, localProvider, requestOf } from '../../../test/channel/local-provider.ts'
import { secret, standard } from '../../../test/sources/signing.ts'
import { verifyStandardWebhook } from '../../sources/signature.ts'
import { standardWebhook } from './standard-webhook.ts'

const now = 1_700_000_000_000
const adapter = standardWebhook({ secret })
const body = {
  sender: { address: 'user-7', name: 'Ann', verified: true }, text: 'The build is green.', conversation: 'room-1', subject: 'Build 12', sentAt: '2023-11-14T22:13:20.000Z',
  attachments: [{ filename: 'log.txt', mediaType: 'text/plain', size: 3, url: 'https://example.org' }],
}

function request(value: unknown, options: Record<string, unknown> = {}) {
  const { headers, body } = standard(typeof value === 'string' ? value : JSON.stringify(value), { at: now, ...options })
  return requestOf(body as string, headers as Record<string, string>)
}
const receive = (value: unknown, options = {}) => adapter.receive(request(value, options), now)

describe('standardWebhook', () => {
  it('maps the default body, with the signed id of the webhook', () => {
    expect(receive(body, { id: 'msg-9' })).toEqual({
      messages: [{
        providerId: 'msg-9', sender: { address: 'user-7', name: 'Ann', verified: true }, conversation: 'room-1', text: 'The build is green.', subject: 'Build 12',
        attachments: [{ filename: 'log.txt', mediaType: 'text/plain', size: 3 }], sentAt: new Date('2023-11-14T22:13:20.000Z'),
      }],
    })
  })

  it('[V3.4] verifies a sender only if the service says so', () => {
    for (const verified of [undefined, false, 'true', 1]) expect(receive({ ...body, sender: { ...body.sender, verified } }).messages[0]?.sender.verified).toBe(false)
  })

  it('[V3.8] takes no kind or id of a channel from a request', () => {
    const [message] = receive({ ...body, kind: 'sms', channel: 'sms', channelId: 'texts', providerId: 'SM1', contactId: 'mum' }).messages
    expect(Object.keys(message ?? {}).toSorted()).toEqual(['attachments', 'conversation', 'providerId', 'sender', 'sentAt', 'subject', 'text'])
    expect(message?.providerId).toBe('msg-1')
    expect(adapter.kind).toBe('webhook')
  })

  it('[V3.1] rejects what is forged, changed, truncated, unsigned, signed twice or too large', () => {
    const code = (request: { headers: Headers; body: string }) => codeOf(() => adapter.receive(request, now))
    const good = request(body)
    expect(code(good)).toBe('accepted')
    expect(code(request(body, { key: 'whsec_b3RoZXItc2VjcmV0LW90aGVyLXNlY3JldA==' }))).toBe('unauthorized')
    expect(code({ ...good, body: `${good.body} ` })).toBe('unauthorized')
    expect(code({ ...good, body: good.body.slice(0, -1) })).toBe('unauthorized')
    expect(code(requestOf(good.body, {}))).toBe('unauthorized')
    expect(code(request(body, { 'webhook-id': 'msg-2' }))).toBe('unauthorized')
    for (const name of ['webhook-id', 'webhook-timestamp']) {
      const twice = request(body)
      twice.headers.append(name, twice.headers.get(name) ?? '')
      expect(code(twice)).toBe('unauthorized')
    }
    expect(code(request({ ...body, pad: 'x'.repeat(1_100_000) }))).toBe('too_large')
    expect(code(request('{', { key: 'whsec_b3RoZXItc2VjcmV0LW90aGVyLXNlY3JldA==' }))).toBe('unauthorized')
  })

  it('[V3.2] rejects a request outside of five minutes; a repeat within is the same message', () => {
    for (const [away, code] of [[299_000, 'accepted'], [301_000, 'unauthorized'], [-299_000, 'accepted'], [-302_000, 'unauthorized']] as const)
      expect(codeOf(() => receive(body, { at: now - away }))).toBe(code)
    expect(receive(body, { at: now - 60_000 })).toEqual(receive(body))
  })

  it('[V3.9] rejects a signed body without a sender or a text, and values of the wrong type', () => {
    const code = (value: unknown) => codeOf(() => receive(value))
    for (const wrong of [
      '[]', '{', 'null', {}, { ...body, text: undefined }, { ...body, text: 5 }, { ...body, sender: 'user-7' }, { ...body, sender: { address: '' } }, { ...body, sender: { address: 'x\0y' } },
      { ...body, sentAt: 'yesterday' }, { ...body, conversation: '' }, { ...body, sender: { address: 'x'.repeat(600) } },
    ]) expect([wrong, code(wrong)]).toEqual([wrong, 'invalid_argument'])
  })

  it('maps other bodies with `map`, also to no message', () => {
    const mapped = standardWebhook({
      secret, map: ({ id, body }) => (body.type === 'said' ? { providerId: `said:${id}`, sender: { address: String(body.who), verified: false }, text: String(body.what) } : undefined),
    })
    expect(mapped.receive(request({ type: 'said', who: 'ann', what: 'Hi' }), now).messages).toEqual([{ providerId: 'said:msg-1', sender: { address: 'ann', verified: false }, text: 'Hi' }])
    expect(mapped.receive(request({ type: 'left' }), now)).toEqual({ messages: [] })
    const wrong = standardWebhook({ secret, map: () => ({ sender: { address: 'ann' }, text: 'Hi' }) as never })
    expect(() => wrong.receive(request({}), now)).toThrow('message.sender.verified')
    expect(codeOf(() => standardWebhook({ secret, mapping: () => undefined } as never))).toBe('unsupported_option')
  })
})

describe('a reply by a webhook', () => {
  const reply = { to: 'user-7', conversation: 'room-1', text: 'Thanks', idempotencyKey: 'reply:1', abortSignal: new AbortController().signal }

  it('is signed with the secret of replies, or that of the channel, under its own id', async () => {
    const { url, requests } = await localProvider(() => ({ status: 200, body: { id: 'out-1' } }))
    const other = 'whsec_b3RoZXItc2VjcmV0LW90aGVyLXNlY3JldA=='
    expect(await standardWebhook({ secret, replies: { url } }).send?.(reply)).toEqual({ providerId: 'out-1' })
    await standardWebhook({ secret, replies: { url: `${url}/x?y=1`, secret: other } }).send?.(reply)
    const verified = (index: number, key: string) => {
      const { headers, body } = requests[index] ?? { headers: {}, body: '' }
      return verifyStandardWebhook(new Headers(headers as Record<string, string>), body, [key], Date.now()).id
    }
    expect([verified(0, secret), verified(1, other), requests[1]?.path]).toEqual(['reply:1', 'reply:1', '/x?y=1'])
    expect(() => verified(1, secret)).toThrow('signature')
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ to: 'user-7', conversation: 'room-1', text: 'Thanks' })
    expect(standardWebhook({ secret }).send).toBeUndefined()
  })

  it('[V3.10] fails with whether it may be repeated, and takes no insecure address', async () => {
    const { url } = await localProvider(() => ({ status: 410, body: secret }))
    const failure = await standardWebhook({ secret, replies: { url } }).send?.(reply).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'provider_error', retryable: false, details: { status: 410, maybeSent: false } })
    expect(JSON.stringify(failure)).not.toContain(secret)
    const code = (replies: object) => codeOf(() => standardWebhook({ secret, replies: replies as never }))
    expect(code({ url: 'https://example.org/hook?a=b' })).toBe('accepted')
    for (const wrong of ['http://example.org', 'https://a:b@example.org', 'ftp://example.org', 'https://example.org/#x', 5]) expect(code({ url: wrong })).toBe('invalid_argument')
    expect(code({ url: 'https://example.org', secret: 'short' })).toBe('invalid_argument')
    expect(code({ url: 'https://example.org', key: 'x' })).toBe('unsupported_option')
  })
})
