import { describe, expect, it } from 'vitest'
import { codeOf } from '../../../test/channel/local-provider.ts'
import { decodeWords, readDmarc, readFrom } from './email-headers.ts'

const from = (...values: string[]) => readFrom(values.map((value) => ['From', value] as const))
const dmarc = (...values: string[]) => readDmarc(values.map((value) => ['Authentication-Results', value] as const), 'mx.example.org')

describe('the From of a mail', () => {
  it('is an address, with or without a name', () => {
    expect(from('ann@example.com')).toEqual({ address: 'ann@example.com' })
    expect(from(' <ann@example.com> ')).toEqual({ address: 'ann@example.com' })
    expect(from('Ann Lee <ann@example.com>')).toEqual({ address: 'ann@example.com', name: 'Ann Lee' })
    expect(from('"Lee, Ann \\"A\\"" <ann@example.com>')).toEqual({ address: 'ann@example.com', name: 'Lee, Ann "A"' })
    expect(from('ann@example.com (Ann (the first) Lee)')).toEqual({ address: 'ann@example.com' })
    expect(from('=?utf-8?B?QW5uIEzDqWU=?= <ann@example.com>')).toEqual({ address: 'ann@example.com', name: 'Ann Lée' })
    expect(from('ann@example.com <ann@example.com>')).toEqual({ address: 'ann@example.com', name: 'ann@example.com' })
  })

  it('[V3.5] is never read from a name, a comment or a quotation', () => {
    expect(from('"security@bank.example" <x@evil.example>')).toEqual({ address: 'x@evil.example', name: 'security@bank.example' })
    expect(from('"<security@bank.example>" <x@evil.example>')).toMatchObject({ address: 'x@evil.example' })
    expect(from('(security@bank.example) x@evil.example')).toEqual({ address: 'x@evil.example' })
    expect(from('(<security@bank.example>) Ann <x@evil.example>')).toMatchObject({ address: 'x@evil.example' })
    expect(from('=?utf-8?Q?=3Csecurity=40bank.example=3E?= <x@evil.example>')).toEqual({ address: 'x@evil.example', name: '<security@bank.example>' })
  })

  it('[V3.5] is rejected where there is none, several, or a text that programs read differently', () => {
    for (const values of [
      [], ['ann@example.com', 'x@evil.example'], [''], ['Ann'], ['Ann Lee <>'], ['ann@example.com, x@evil.example'], ['Ann <ann@example.com>, X <x@evil.example>'],
      ['<ann@example.com> <x@evil.example>'], ['security@bank.example <x@evil.example>'], ['<ann@example.com> x'], ['Ann <ann@example.com'], ['"Ann <ann@example.com>'],
      ['Ann (friend <ann@example.com>'], ['Team: ann@example.com;'], ['ann@example.com x@evil.example'], ['<ann@exa mple.com>'], ['<@relay.example:ann@example.com>'],
      ['"ann"@example.com'], ['Ann <"a>b"@example.com>'],
    ]) expect([values, codeOf(() => from(...values))]).toEqual([values, 'invalid_argument'])
  })

  it('takes time linear in its length', () => {
    for (const long of ['('.repeat(900_000), '"\\'.repeat(450_000), '<'.repeat(900_000), ' '.repeat(900_000), 'a '.repeat(450_000), '=?'.repeat(450_000)]) {
      const before = process.threadCpuUsage()
      codeOf(() => from(`${long}ann@example.com`))
      codeOf(() => decodeWords(long))
      codeOf(() => dmarc(`${long}; dmarc=pass`))
      // Microseconds of this thread: what other processes do does not count.
      expect(process.threadCpuUsage(before).user).toBeLessThan(20_000_000)
    }
  })
})

describe('Authentication-Results', () => {
  it('has the result of DMARC of the own server, and its domain', () => {
    expect(dmarc('mx.example.org; spf=pass smtp.mailfrom=b.example; dkim=pass (2048-bit key) header.d=bank.example; dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=Bank.Example')).toEqual({ result: 'pass', domain: 'bank.example' })
    expect(dmarc('MX.Example.ORG 1; DMARC = Pass action=none header.from = bank.example')).toEqual({ result: 'pass', domain: 'bank.example' })
    expect(dmarc('mx.example.org; dmarc=fail (p=NONE) header.from="bank.example"')).toEqual({ result: 'fail', domain: 'bank.example' })
    expect(dmarc('mx.example.org; dkim=pass header.d=bank.example', 'mx.example.org; dmarc=pass header.from=bank.example')).toEqual({ result: 'pass', domain: 'bank.example' })
    expect(dmarc('mx.example.org; dmarc=pass')).toEqual({ result: 'pass' })
  })

  it('[V3.4] counts neither results of other servers, nor those in comments and quotations, nor several', () => {
    expect(dmarc()).toBeUndefined()
    expect(dmarc('mx.example.org; none')).toBeUndefined()
    expect(dmarc('mx.evil.example; dmarc=pass header.from=bank.example')).toBeUndefined()
    expect(dmarc('mx.example.org.evil.example; dmarc=pass header.from=bank.example')).toBeUndefined()
    expect(dmarc('mx.example.org; dmarc=fail (; dmarc=pass header.from=bank.example) header.from=bank.example')).toEqual({ result: 'fail', domain: 'bank.example' })
    expect(dmarc('mx.example.org; spf=fail reason="; dmarc=pass header.from=bank.example"')).toBeUndefined()
    expect(dmarc('mx.example.org; dmarc=fail header.from=bank.example', 'mx.example.org; dmarc=pass header.from=bank.example')).toBeUndefined()
    expect(dmarc('mx.example.org; dmarc=fail header.from=a.example; dmarc=pass header.from=bank.example')).toBeUndefined()
    expect(dmarc('mx.example.org; xdmarc=pass header.from=bank.example; dmarc-x=pass header.from=bank.example')).toBeUndefined()
    expect(dmarc('mx.example.org; dmarc=pass header.from=a.example header.from=bank.example')).toEqual({ result: 'pass' })
    expect(dmarc('mx.example.org; dmarc=pass (header.from=bank.example')).toBeUndefined()
  })
})

describe('encoded words', () => {
  it('are decoded, and left as they are where that is impossible', () => {
    expect(decodeWords('=?UTF-8?Q?Gr=C3=BC=C3=9Fe_an?= =?utf-8?b?IGFsbGU=?=')).toBe('Grüße an alle')
    expect(decodeWords('=?iso-8859-1?Q?caf=E9?= open')).toBe('café open')
    for (const kept of ['=?no-such-set?Q?a?=', '=?utf-8?Q?=FF?=', '=?utf-8?X?a?=', 'plain']) expect(decodeWords(kept)).toBe(kept)
  })
})
