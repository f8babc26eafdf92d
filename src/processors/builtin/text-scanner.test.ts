import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RegexRule } from './text-scanner.ts'
import { regexPresets } from './regex-presets.ts'
import { MAX_HELD, StreamedText, TextScanner } from './text-scanner.ts'

const presets = [...regexPresets.secrets, ...regexPresets.pii, ...regexPresets.urls]
const secrets = [
  'AKIAIOSFODNN7EXAMPLE', 'aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', `ghp_${'aB3'.repeat(12)}`, `sk-ant-${'a-9_'.repeat(20)}`,
  `eyJ${'aB_'.repeat(20)}.eyJ${'cD-'.repeat(150)}.${'e9'.repeat(20)}`, `Bearer ${'xY.9'.repeat(30)}`, 'ann@mail.example.com', '+41 44 668 18 00', '(415) 555-2671',
  '4111 1111 1111 1111', 'DE89 3704 0044 0532 0130 00', '078-05-1120', '192.168.0.1', 'https://example.com/path?q=1',
  `-----BEGIN RSA PRIVATE KEY-----\n${`${'Qk3+'.repeat(16)}\n`.repeat(6)}-----END RSA PRIVATE KEY-----`,
]
const words = ['The', 'key', 'is', 'bearer', 'Call', 'at', '12', '30.', '(see', 'page', '4)', 'DE', 'BEGIN', '---', '--', 'sk-', 'a@b', 'AKIA', 'x', '\n', '{"a":"', '"}', '+', '1.5']

/** What is shown of a text that comes in these pieces, each time. */
function shown(rules: readonly RegexRule[], pieces: readonly string[], holdBack = 256): string[] {
  const text = new StreamedText(new TextScanner(rules), holdBack)
  return [...pieces.map((piece) => text.add(piece).text), text.end().text]
}

describe('a text in pieces', () => {
  it('is redacted like the whole text, with every cut', () => {
    const text = fc.array(fc.oneof(fc.constantFrom(...secrets), fc.constantFrom(...words)), { minLength: 1, maxLength: 12 })
      .chain((parts) => fc.tuple(fc.constantFrom(parts.join(' '), parts.join('\n'), parts.join(', ')), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 })))
    fc.assert(fc.property(text, ([whole, lengths]) => {
      expect(shown(presets, cut(whole, lengths)).join('')).toBe(new TextScanner(presets).redact(whole).text)
    }), { numRuns: 500 })
  })

  it.each(secrets.map((secret) => [secret.slice(0, 24), secret]))('never releases a part of %j…', (_, secret) => {
    const whole = `Take ${secret}, please.`
    const expected = new TextScanner(presets).redact(whole).text
    for (let at = 0; at <= whole.length; at++) expect(shown(presets, [whole.slice(0, at), whole.slice(at)]).join('')).toBe(expected)
    const letters = shown(presets, whole.split(''))
    expect(letters.join('')).toBe(expected)
    // Nothing was shown that had to be taken back: each time it is the beginning of the end.
    let sofar = ''
    for (const piece of letters) expect(expected.startsWith((sofar += piece))).toBe(true)
  })

  it('is delayed by one word', () => {
    const pieces = 'Everything is fine here and nothing has to wait for long. '.split(/(?<= )/)
    let sofar = ''
    let late = 0
    const text = new StreamedText(new TextScanner(presets), 256)
    for (const [index, piece] of pieces.entries()) {
      sofar += text.add(piece).text
      late = Math.max(late, pieces.slice(0, index + 1).join('').length - sofar.length)
    }
    expect(late).toBeLessThanOrEqual(1)
  })

  it('is delayed by `holdBack` for a rule without an opening', () => {
    const rules = [{ name: 'code', pattern: /c-\d{4}/ }]
    expect(shown(rules, ['abcdefgh', 'ij', 'c-', '12', '34', '567', 'z'], 6)).toEqual(['ab', 'cd', 'ef', 'gh', 'ij', '', '', '[CODE]567z'])
  })

  it('holds no more than its bound', () => {
    const text = new StreamedText(new TextScanner(presets), 256)
    let sofar = 0
    for (let index = 0; index < 40; index++) {
      sofar += text.add('x'.repeat(1000)).text.length
      expect((index + 1) * 1000 - sofar).toBeLessThanOrEqual(MAX_HELD)
    }
    expect(sofar + text.end().text.length).toBe(40_000)
  })

  it('finds matches after a text of that length', () => {
    const whole = `${'x'.repeat(3 * MAX_HELD)} AKIAIOSFODNN7EXAMPLE.`
    expect(shown(presets, cut(whole, [700])).join('')).toBe(`${'x'.repeat(3 * MAX_HELD)} [AWS-ACCESS-KEY-ID].`)
  })

  it('removes the rest of a match that is longer than its bound', () => {
    const rules = [{ name: 'block', pattern: /<<[a-z]*>>/ }]
    const made = shown(rules, cut(`a<<${'b'.repeat(30)}>>c`, [1]), 8).join('')
    expect(made).toMatch(/^a<<b{22,26}\[BLOCK\]c$/)
  })
})

describe('a scanner', () => {
  const scan = (text: string, ...rules: RegexRule[]) => new TextScanner(rules).redact(text)

  it('replaces each match by the name or the replacement of the rule', () => {
    expect(scan('a1 b2', { name: 'one', pattern: /a\d/ }, { name: 'two', pattern: /b\d/, replacement: '$&' })).toEqual({ text: '[ONE] $&', found: ['one', 'two'] })
  })

  it('takes expressions with any flags, and does not change their state', () => {
    const pattern = /A/giy
    pattern.lastIndex = 3
    expect(scan('xaxA', { name: 'a', pattern }).text).toBe('x[A]x[A]')
    expect(pattern.lastIndex).toBe(3)
  })

  it('merges overlapping matches', () => {
    expect(scan('abcd', { name: 'x', pattern: /abc/ }, { name: 'y', pattern: /cd/ })).toEqual({ text: '[X]', found: ['x'] })
  })

  it('does not loop on an empty match', () => {
    expect(scan('abc', { name: 'x', pattern: /z*/ })).toEqual({ text: 'abc', found: [] })
  })

  it('uses the measured length of a match, and searches inside a match of length 0', () => {
    const measure = (match: string) => (match.startsWith('1') ? 0 : 2)
    expect(scan('1234', { name: 'x', pattern: /\d{3}/, measure }).text).toBe('1[X]4')
  })
})

function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, index = 0; at < text.length; at += lengths[index++ % lengths.length] ?? 1) pieces.push(text.slice(at, at + (lengths[index % lengths.length] ?? 1)))
  return pieces
}
