import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RegexRule } from './text-scanner.ts'
import { regexPresets } from './regex-presets.ts'
import { StreamedText, TextScanner } from './text-scanner.ts'

const every: Readonly<Record<string, readonly RegexRule[]>> = { ...regexPresets, 'all of them': Object.values(regexPresets).flat() }

const samples = [
  'AKIAIOSFODNN7EXAMPLE', 'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', `ghp_${'aB3'.repeat(12)}`, `github_pat_${'a_9'.repeat(8)}`, `sk-ant-${'a-9_'.repeat(6)}`,
  `sk-${'c'.repeat(24)}`, `AIza${'d-9_e'.repeat(7)}`, 'xoxb-123456789012-abc', `sk_live_${'1a'.repeat(9)}`, `eyJ${'aB_'.repeat(4)}.eyJ${'cD-'.repeat(5)}.${'e9'.repeat(8)}`,
  'Bearer abcdefghij.klmnop-qrst==', '-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nDEF==\n-----END RSA PRIVATE KEY-----', '-----BEGIN PGP PRIVATE KEY BLOCK-----\nab',
  "jo.o'e+x@mail.example.co.uk", 'GB82 WEST 1234 5698 7654 32', 'DE89370400440532013000', 'BE68 5390 0754 7034 BANK', '4111 1111 1111 1111', '5500-0000-0000-0004', '4242 4242 4242 4242',
  '3782 822463 10005', '30569309025904', '078-05-1120', '+41 (0) 44 668 18 00', '+4 (1) (4) (4) (6) (6) (8) (1) (8) (0) (0)', '0041446681800', '(415) 555-2671', '415.555.2671', '192.168.10.20', '1.2.3.4.5',
  'https://a.example/x?y=1', 'WWW.foo.example/bar',
]
/** A sample, whole or cut off, as often as not more than once: what follows may belong to it or void it. */
const sample = fc.tuple(fc.constantFrom(...samples), fc.integer({ min: 0, max: 6 }), fc.integer({ min: 1, max: 4 }), fc.constantFrom('', ' ', '-'))
  .map(([text, less, times, between]) => Array.from({ length: times }, () => text.slice(0, text.length - (less > 3 ? less - 3 : 0))).join(between))
/** What stands beside it. Most patterns ask about just these characters. */
const beside = fc.string({ unit: fc.constantFrom('a', 'Z', 'VISA', '0', '7', '42', '_', '-', '-----', '.', '+', '(', ')', '/', '=', '@', "'", '"', ':', ' ', '  ', '\n', 'é', '<', 'BEGIN ', 'bearer ', 'DE'), maxLength: 6 })
const text = fc.array(fc.tuple(beside, sample), { minLength: 1, maxLength: 4 }).chain((parts) => fc.tuple(fc.constant(parts.flat().join('')), beside)).map((parts) => parts.join(''))
const cuts = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 24 })

function streamed(scanner: TextScanner, whole: string, lengths: readonly number[]): string {
  const stream = new StreamedText(scanner, 256)
  let shown = ''
  for (let at = 0, index = 0; at < whole.length; index++) {
    const length = lengths[index % lengths.length] ?? 1
    shown += stream.add(whole.slice(at, at + length)).text
    at += length
  }
  return shown + stream.end().text
}

describe('the presets in a stream', () => {
  it.each(Object.keys(every))('[G2.31] %s: a text in pieces is redacted like the whole text, in every context and with every cut', (name) => {
    const scanner = new TextScanner(every[name] ?? [])
    fc.assert(fc.property(text, cuts, (whole, lengths) => {
      expect(streamed(scanner, whole, lengths)).toBe(scanner.redact(whole).text)
    }), { numRuns: 400 })
  })

  it.each([
    ['VISA4111 1111 1111 1111 ok', 'VISA[CREDIT-CARD] ok'],
    ['+4111 1111 1111 1111 ok', '[PHONE] ok'],
    ['------BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY----- ok', '-[PRIVATE-KEY] ok'],
    ['4242 4242 4242 4242 '.repeat(8), '[CREDIT-CARD] '.repeat(8)],
  ])('[G2.31] %j is published as %j, letter by letter', (whole, shown) => {
    expect(streamed(new TextScanner(every['all of them'] ?? []), whole, [1])).toBe(shown)
  })
})
