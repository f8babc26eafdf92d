import { describe, expect, it } from 'vitest'
import { regexPresets, type RegexPreset } from './regex-presets.ts'
import { TextScanner } from './text-scanner.ts'

const found = (preset: RegexPreset, text: string) => new TextScanner(regexPresets[preset]).find(text).map(({ start, end, rule }) => [rule.name, text.slice(start, end)])

const b64 = (length: number) => 'Ab3dEf9hIj_lMn0pQr5tUv-xYz'.repeat(12).slice(0, length)
const alnum = (length: number) => 'Ab3dEf9hIjKlMn0pQr5tUvWxYz'.repeat(12).slice(0, length)
const pem = (kind: string) => `-----BEGIN ${kind}-----\n${`${alnum(64)}\n`.repeat(8)}${alnum(20)}==\n-----END ${kind}-----`
const jwt = `eyJ${b64(33)}.eyJ${b64(60)}.${b64(43)}`

describe('the preset', () => {
  it.each(([
    ['secrets', 'aws-access-key-id', 'AKIAIOSFODNN7EXAMPLE'],
    ['secrets', 'aws-access-key-id', 'ASIAY34FZKBOKMUTVV7A'],
    ['secrets', 'aws-secret-access-key', 'aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'],
    ['secrets', 'aws-secret-access-key', `AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY`],
    ['secrets', 'github-token', `ghp_${alnum(36)}`],
    ['secrets', 'github-token', `github_pat_${alnum(22)}_${alnum(59)}`],
    ['secrets', 'anthropic-key', `sk-ant-api03-${b64(93)}`],
    ['secrets', 'openai-key', `sk-${alnum(48)}`],
    ['secrets', 'openai-key', `sk-proj-${b64(100)}`],
    ['secrets', 'google-api-key', `AIza${b64(34)}9`],
    ['secrets', 'slack-token', 'xoxb-123456789012-abcdefABCDEF'],
    ['secrets', 'stripe-key', `sk_live_${alnum(24)}`],
    ['secrets', 'private-key', pem('PRIVATE KEY')],
    ['secrets', 'private-key', pem('RSA PRIVATE KEY')],
    ['secrets', 'private-key', pem('PGP PRIVATE KEY BLOCK')],
    ['secrets', 'jwt', jwt],
    ['secrets', 'bearer-token', `Bearer ${b64(40)}=`],
    ['secrets', 'bearer-token', `bearer  ${jwt}`],
    ['pii', 'email', 'ann.o\'hara+x@mail.example.co.uk'],
    ['pii', 'email', `${'x'.repeat(64)}@example.com`],
    ['pii', 'phone', '+41 44 668 18 00'],
    ['pii', 'phone', '+1 (415) 555-2671'],
    ['pii', 'phone', '0041446681800'],
    ['pii', 'phone', '(415) 555-2671'],
    ['pii', 'phone', '415-555-2671'],
    ['pii', 'credit-card', '4111 1111 1111 1111'],
    ['pii', 'credit-card', '5500-0000-0000-0004'],
    ['pii', 'credit-card', '378282246310005'],
    ['pii', 'credit-card', '30569309025904'],
    ['pii', 'iban', 'DE89 3704 0044 0532 0130 00'],
    ['pii', 'iban', 'GB82WEST12345698765432'],
    ['pii', 'iban', 'NO93 8601 1117 947'],
    ['pii', 'ssn', '078-05-1120'],
    ['pii', 'ip-address', '192.168.0.255'],
    ['urls', 'url', 'https://example.com/a?b=c#d'],
    ['urls', 'url', 'www.example.com'],
  ] satisfies Array<[RegexPreset, string, string]>).map(([preset, name, secret]) => [preset, name, secret.slice(0, 24), secret] as const))('%s finds %s: %j…', (preset, name, _, secret) => {
    for (const text of [secret, `It is ${secret}.`.replace('.co.uk.', '.co.uk').replace(/([?#]\S*|www\S*)\.$/, '$1'), `"${secret}"`, `\n${secret}\nnext`]) {
      if (name === 'private-key' && text.endsWith('next')) continue
      expect([text, found(preset, text)]).toEqual([text, [[name, secret]]])
    }
  })

  it.each<[RegexPreset, string]>([
    ['secrets', 'AKIA is a prefix, and so are ghp_ and sk-'],
    ['secrets', 'XAKIAIOSFODNN7EXAMPLEX'],
    ['secrets', 'task-force-of-twenty-two-people-or-more'],
    ['secrets', 'eyJhbGciOiJIUzI1NiJ9 has no claims'],
    ['secrets', '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----'],
    ['secrets', 'The bearer of this letter'],
    ['pii', 'me@localhost, @handle and a@b'],
    ['pii', '4111 1111 1111 1112'],
    ['pii', 'GB82 WEST 1234 5698 7654 33'],
    ['pii', '000-12-3456 666-12-3456 078-00-1120'],
    ['pii', '256.1.1.1 and 1.2.3.4.5 and 10.15.7'],
    ['pii', 'On 2026-01-15 at 12:30 there were 1 234 567 people'],
    ['urls', 'httpsx example.com'],
  ])('%s finds nothing in: %s', (preset, text) => {
    expect(found(preset, text)).toEqual([])
  })

  it('finds a card after another number, and an account before words in capitals', () => {
    expect(found('pii', 'No 1 4111111111111111 123')).toEqual([['credit-card', '4111111111111111']])
    expect(found('pii', 'BE68 5390 0754 7034 BANK OF')).toEqual([['iban', 'BE68 5390 0754 7034']])
  })

  it('finds a key that was cut off', () => {
    const cut = pem('EC PRIVATE KEY').slice(0, 300)
    expect(found('secrets', cut)).toEqual([['private-key', cut]])
  })

  // A pattern that is not linear does not end within the time of a test.
  const unpleasant = [
    'a', '1', '1 ', '1.', '-', '-----', '-----BEGIN ', '-----BEGIN PRIVATE KEY-----', 'eyJ', 'eyJ.', 'eyJaaaaaaaa.', 'sk-', 'AKIA', 'a.', 'a@', 'a@a.', "a'", '+1', '+1 (', '4111 ',
    'DE89 ', 'DE893704', 'AA00 AAAA ', 'Bearer ', 'bearer a', 'aws_secret_access_key=', 'http://', 'http', 'www.', '1-', '000-', 'ghp_', 'xoxb-', ' ', '\n', '(', '(1',
  ]
  it.each(unpleasant)('takes linear time: %j', (piece) => {
    const text = piece.repeat(Math.ceil(100_000 / piece.length))
    for (const preset of ['secrets', 'pii', 'urls'] as const) {
      const scanner = new TextScanner(regexPresets[preset])
      for (const end of ['', '!', '\u0000']) {
        scanner.find(text + end)
        expect(scanner.openFrom(text + end, 0)).toBeLessThanOrEqual(text.length + 1)
      }
    }
  })
})
