import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  acceptCategories, annotationSchema, CATEGORIES, isCategory, MAX_CATEGORIES, MAX_OFFERED, offeredCategories, ruleCategories, uniteCategories,
} from './annotation.ts'
import { visibleText } from './candidate-text.ts'

const [offered = []] = offeredCategories(['family_help', 'bank_login'])

describe('the categories of a message', () => {
  it('case 33: [V2.12] are those that were offered, whatever a message claims to be', () => {
    expect(offered).toStrictEqual([...CATEGORIES, 'family_help', 'bank_login'])
    expect(acceptCategories({ categories: ['urgent', 'verification_code', 'admin', 'Urgent', 'urgent '] }, offered)).toStrictEqual(['verification_code', 'urgent'])
    expect(ruleCategories('categories: verification_code, urgent')).toStrictEqual([])
  })

  it('case 35: [V2.12] are capped and of a closed charset', () => {
    const bomb = Array.from({ length: 10_000 }, (_, index) => `c${index}`)
    expect(acceptCategories({ categories: bomb }, offered)).toStrictEqual([])
    const wide = offeredCategories(bomb)
    expect(wide.map(({ length }) => length)).toStrictEqual([...Array.from({ length: 39 }, () => MAX_OFFERED), 33])
    expect(new Set(wide.flat())).toStrictEqual(new Set([...CATEGORIES, ...bomb]))
    expect(acceptCategories({ categories: bomb }, wide[0] ?? [])).toHaveLength(MAX_CATEGORIES)
    const bad = ['a\nb', '</awaiting_categories>', 'a b', '', 'A', '1a', `a${'b'.repeat(32)}`, 'é', 'a-b', '__proto__', 'a\n']
    expect(bad.filter(isCategory)).toStrictEqual([])
    expect(offeredCategories(bad)).toStrictEqual([CATEGORIES])
    expect(acceptCategories({ categories: bad }, bad)).toStrictEqual([])
    expect(CATEGORIES.every(isCategory)).toBe(true)
    expect(`a${'b'.repeat(31)}`).toSatisfy(isCategory)
  })

  it("case 35: [V2.12] of other resources' watches are not accepted", () => {
    expect(acceptCategories({ categories: ['family_help', 'merger_plan'] }, offered)).toStrictEqual(['family_help'])
  })

  it('case 35: [V2.12] of any output are read without an error', () => {
    fc.assert(
      fc.property(fc.anything(), (output) => {
        expect(acceptCategories(output, offered).every((label) => offered.includes(label))).toBe(true)
      }),
      { numRuns: 300, seed: 35 },
    )
    for (const output of [undefined, null, 'urgent', { categories: 'urgent' }, Object.create({ categories: ['urgent'] }), [['urgent']]]) {
      expect(acceptCategories(output, offered)).toStrictEqual([])
    }
    expect(acceptCategories(['urgent'], offered)).toStrictEqual(['urgent'])
    expect(acceptCategories(Object.defineProperty({}, 'categories', { get: () => { throw new Error('read') } }), offered)).toStrictEqual([])
  })

  it('[V2.12] are asked for with a schema that has no text', () => {
    expect(annotationSchema(['a', 'b'])).toStrictEqual({
      type: 'object', properties: { categories: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, maxItems: 32 } },
      required: ['categories'], additionalProperties: false,
    })
  })

  it('[V2.12] of rules come before those of a model', () => {
    expect(uniteCategories(['auth'], ['urgent', 'auth', 'NO'])).toStrictEqual(['auth', 'urgent'])
    const many = Array.from({ length: 40 }, (_, index) => `c${index}`)
    expect(uniteCategories(['auth'], many)).toHaveLength(MAX_CATEGORIES)
    expect(uniteCategories(['auth'], many)[0]).toBe('auth')
  })
})

describe('rules without a model', () => {
  it.each([
    'Your verification code is 482913.', 'code:482913', '482913', '482 913', 'G-482913 is your Google verification code.', 'Use 4829 as your PIN',
    'Login with 48291377', 'Your one-time password: 482-913', 'Your Stripe code is A4K9Q2', 'Ihr Bestätigungscode lautet 482913', 'Dein Einmalpasswort: 482913',
    'Votre code est 482913', 'Tu código es 482913', 'Seu código é 482913', 'Il tuo codice è 482913', 'Ваш код: 482913', 'Twój kod to 482913', 'Doğrulama kodunuz 482913',
    '您的验证码是482913', '認証コードは482913です', '인증번호 482913', 'رمز التحقق ٤٨٢٩١٣', 'आपका कोड ४८२९१३ है', 'Код подтверждения 482913', '４８２９１３ is your code',
    'co\u200bde 48\u200b2913', 'Mã xác thực: 482913', 'passcode 482913',
  ])('case 34: [V2.13] %j has a verification code', (text) => {
    expect(ruleCategories(visibleText(text, 999).text)).toStrictEqual(['verification_code', 'auth'])
  })

  it.each(['See you at 12:30', 'Meet me in room 12', 'My code compiles', 'Call +4915112345678 for the code', 'Dinner on 12/2024?', 'Hi', ''])('case 34: [V2.13] %j has none', (text) => {
    expect(ruleCategories(text)).toStrictEqual([])
  })

  it.each(['You paid $12.50', 'Überweisung von 12,50 €', 'Total: EUR 40', '40 EUR', '¥5000', 'Zahlung 12 Euro', '1200 руб', '500円', '₹ 300'])(
    '[V2.13] %j has an amount of money', (text) => expect(ruleCategories(text)).toStrictEqual(['finance']),
  )

  it.each(['https://example.com/x', 'see www.example.org', 'click bit.ly/x9', 'go to Example.COM now', 'HTTP://10.0.0.1/'])('[V2.13] %j has a link', (text) => {
    expect(ruleCategories(text)).toStrictEqual(['link'])
  })

  it.each(['mail me at ada@example.com', 'version 1.2.3', 'e.g. this', 'file.txt'])('[V2.13] %j has no link', (text) => {
    expect(ruleCategories(text)).toStrictEqual([])
  })

  it('case 34: [V2.13] read a bounded text in linear time', () => {
    const long = ['1'.repeat(1e6), 'a'.repeat(1e6), 'A1'.repeat(5e5), 'a.'.repeat(5e5), 'einmal'.repeat(1e5), ' '.repeat(1e6), '$ '.repeat(5e5), 'code '.repeat(2e5)]
    for (const text of long) expect(ruleCategories(text)).not.toContain('verification_code')
  })
})
