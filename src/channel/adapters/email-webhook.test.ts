import { describe, expect, it } from 'vitest'
import { codeOf, requestOf } from '../../../test/channel/local-provider.ts'
import { secret, standard } from '../../../test/sources/signing.ts'
import { emailWebhook } from './email-webhook.ts'

const now = 1_700_000_000_000
const adapter = emailWebhook({ secret, authservId: 'mx.example.org', own: ['Guide@Example.org'] })

const passed = 'mx.example.org; spf=pass smtp.mailfrom=bounce.bank.example; dkim=pass header.d=bank.example; dmarc=pass (p=REJECT) header.from=bank.example'
const headers: Array<[string, string]> = [
  ['Authentication-Results', passed],
  ['Received', 'from out.bank.example (out.bank.example [192.0.2.7]) by mx.example.org with ESMTPS; Tue, 14 Nov 2023 22:13:20 +0000'],
  ['From', '"Bank, Security" <Security@Bank.example>'],
  ['To', 'guide@example.org'],
  ['Subject', '=?utf-8?Q?Your_code?='],
  ['Date', 'Tue, 14 Nov 2023 22:13:19 +0000'],
  ['Message-ID', '<1@bank.example>'],
]
const body = { headers, text: 'Your code is 482913.\r\n', attachments: [{ filename: 'terms.pdf', mediaType: 'application/pdf', size: 12_000, content: 'JVBERi0=' }] }

function request(value: unknown, options: Record<string, unknown> = {}) {
  const { headers, body } = standard(typeof value === 'string' ? value : JSON.stringify(value), { at: now, ...options })
  return requestOf(body as string, headers as Record<string, string>)
}
const receive = (value: unknown) => adapter.receive(request(value), now)
/** The sender, with some headers in the place of others. */
const senderOf = (changes: Record<string, string[]>) => {
  const kept = headers.filter(([name]) => !(name in changes))
  return receive({ ...body, headers: [...Object.entries(changes).flatMap(([name, values]) => values.map((value) => [name, value])), ...kept] }).messages[0]?.sender
}

describe('emailWebhook', () => {
  it('[V3.4] maps a mail, whose author is verified by DMARC of the own server for the domain of From', () => {
    expect(receive(body)).toEqual({
      messages: [{
        providerId: 'msg-1', sender: { address: 'security@bank.example', name: 'Bank, Security', verified: true }, subject: 'Your code', text: 'Your code is 482913.\r\n',
        attachments: [{ filename: 'terms.pdf', mediaType: 'application/pdf', size: 12_000 }], sentAt: new Date('2023-11-14T22:13:19Z'),
      }],
    })
  })

  it('[V3.4] does not verify without exactly one pass for that very domain', () => {
    const verified = (...results: string[]) => senderOf({ 'Authentication-Results': results })?.verified
    expect(verified(passed)).toBe(true)
    expect(verified()).toBe(false)
    expect(verified('mx.example.org; dmarc=fail header.from=bank.example')).toBe(false)
    expect(verified('mx.example.org; dmarc=none header.from=bank.example')).toBe(false)
    expect(verified('mx.example.org; spf=pass smtp.mailfrom=bank.example; dkim=pass header.d=bank.example')).toBe(false)
    expect(verified('mx.example.org; dmarc=pass header.from=evil.example')).toBe(false)
    expect(verified('mx.example.org; dmarc=pass')).toBe(false)
    expect(verified('mx.sender.example; dmarc=pass header.from=bank.example')).toBe(false)
    // A header that was in the message when it arrived, below the server's own.
    expect(verified('mx.example.org; dmarc=fail header.from=bank.example', passed)).toBe(false)
    expect(verified('mx.example.org; dmarc=pass header.from=example')).toBe(false)
    expect(verified('mx.example.org; dmarc=pass header.from=sub.bank.example')).toBe(false)
  })

  it('[V3.5] takes the address from the address alone', () => {
    expect(senderOf({ From: ['"security@bank.example" <x@evil.example>'] })).toEqual({ address: 'x@evil.example', name: 'security@bank.example', verified: false })
    // Letters of another alphabet, and a quoted local part.
    expect(senderOf({ From: ['security@bаnk.example'] })).toEqual({ address: 'security@bаnk.example', verified: false })
    expect(senderOf({ From: ['security@bank.example.'] })?.verified).toBe(false)
    expect(codeOf(() => senderOf({ From: ['security@bank.example', 'x@evil.example'] }))).toBe('invalid_argument')
    expect(codeOf(() => senderOf({ From: ['security@bank.example, x@evil.example'] }))).toBe('invalid_argument')
    expect(codeOf(() => senderOf({ From: [] }))).toBe('invalid_argument')
  })

  it('[V3.3] marks its own mail, and what a program or a list sent', () => {
    const message = (more: Array<[string, string]>) => receive({ ...body, headers: [...headers, ...more] }).messages[0]
    expect(message([])?.automatic).toBeUndefined()
    expect(message([['Auto-Submitted', 'no']])?.automatic).toBeUndefined()
    for (const header of [['Auto-Submitted', 'auto-replied'], ['precedence', 'bulk'], ['List-Id', '<news.example.org>']] as Array<[string, string]>) expect(message([header])).toMatchObject({ automatic: true })
    const own = headers.map(([name, value]) => [name, name === 'From' ? 'Guide <guide@example.org>' : value])
    expect(receive({ ...body, headers: own }).messages[0]).toMatchObject({ own: true })
  })

  it('[V3.1] rejects what is forged, changed, truncated, expired or too large', () => {
    const code = (request: { headers: Headers; body: string }) => codeOf(() => adapter.receive(request, now))
    const good = request(body)
    expect(code(good)).toBe('accepted')
    expect(code(request(body, { key: 'whsec_b3RoZXItc2VjcmV0LW90aGVyLXNlY3JldA==' }))).toBe('unauthorized')
    expect(code({ ...good, body: good.body.replace('482913', '482914') })).toBe('unauthorized')
    expect(code({ ...good, body: good.body.slice(0, -1) })).toBe('unauthorized')
    expect(code({ ...good, headers: new Headers() })).toBe('unauthorized')
    expect(code(request(body, { at: now - 301_000 }))).toBe('unauthorized')
    expect(code(request({ ...body, text: 'x'.repeat(1_100_000) }))).toBe('too_large')
  })

  it('[V3.9] rejects a body of another shape, and takes it with `map`', () => {
    const code = (value: unknown) => codeOf(() => receive(value))
    for (const wrong of [{ ...body, text: 1 }, { ...body, headers: { From: 'ann@example.com' } }, { ...body, headers: [['From']] }, { ...body, headers: [['From', 1]] }, '[]', '{'])
      expect(code(wrong)).toBe('invalid_argument')
    expect(code({ ...body, headers: Array.from({ length: 1_001 }, () => ['X', 'y']) })).toBe('invalid_argument')
    const mapped = emailWebhook({
      secret, authservId: 'mx.example.org',
      map: ({ body }) => (body.event === 'received' ? { headers: body.raw as never, text: String(body.plain) } : undefined),
    })
    expect(mapped.receive(request({ event: 'received', raw: headers, plain: 'Hello' }), now).messages).toMatchObject([{ text: 'Hello', sender: { verified: true } }])
    expect(mapped.receive(request({ event: 'bounced' }), now).messages).toEqual([])
  })

  it('rejects options that it does not know, and addresses that are none', () => {
    expect(codeOf(() => emailWebhook({ secret, authservId: 'mx.example.org', authserv: 'x' } as never))).toBe('unsupported_option')
    expect(codeOf(() => emailWebhook({ secret, authservId: '' }))).toBe('invalid_argument')
    expect(codeOf(() => emailWebhook({ secret, authservId: 'mx.example.org', own: ['guide'] }))).toBe('invalid_argument')
    expect(codeOf(() => emailWebhook({ secret: 'short', authservId: 'mx.example.org' }))).toBe('invalid_argument')
    expect(adapter.send).toBeUndefined()
  })
})
