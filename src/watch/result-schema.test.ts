import { Socket } from 'node:net'
import * as fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import { parseResult } from './result-json.ts'
import { compileResultSchema, matchedOnly } from './result-schema.ts'

const code = { type: 'string', pattern: '^[0-9]{6}$' }
const answer = { type: 'string', enum: ['yes', 'no', 'cancelled'] }
const text = { type: 'string', 'x-untrusted-text': true, maxLength: 300 }
const object = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({ type: 'object', properties, required, additionalProperties: false })
const list = (items: unknown, maxItems = 20) => ({ type: 'array', items, maxItems })

/** The refusal of a schema. */
function refusal(schema: unknown): HeedError {
  try {
    compileResultSchema(schema)
  } catch (error) {
    if (error instanceof HeedError) return error
    throw error
  }
  throw new Error(`${JSON.stringify(schema)} was accepted`)
}

const pointerOf = (schema: unknown) => {
  const error = refusal(schema)
  expect(error.code).toBe('invalid_argument')
  expect(error.message).toContain(`result_schema${String(error.details?.pointer)}`)
  return error.details?.pointer
}
const codesOf = (schema: unknown, value: unknown) => {
  const validation = compileResultSchema(schema).validate(value)
  return validation.ok ? 'ok' : validation.issues.map((issue) => `${issue.pointer} ${issue.code}`).join()
}
const valid = (schema: unknown, value: unknown) => codesOf(schema, value) === 'ok'

afterEach(() => vi.restoreAllMocks())

describe('a result schema', () => {
  it('case 1: [V2.3] an unconstrained string is refused, with what would leak', () => {
    const error = refusal(object({ category: { type: 'string' } }))
    expect(error.details).toStrictEqual({ field: 'result_schema', pointer: '/properties/category' })
    expect(error.message).toContain('unconstrained string')
    expect(error.message).toContain('any text')
    expect(pointerOf({ type: 'string', maxLength: 20 })).toBe('')
    expect(pointerOf(object({ evidence_quote: { type: 'string', maxLength: 300 } }))).toBe('/properties/evidence_quote')
    expect(pointerOf(list({ type: 'string' }))).toBe('/items')
    expect(pointerOf({})).toBe('')
    expect(pointerOf({ pattern: '^a$' })).toBe('')
    expect([true, null, 'string', [], 3].map(pointerOf)).toStrictEqual(['', '', '', '', ''])
  })

  it('case 1: [V2.4] free text is asked for by name, is short, and is flagged', () => {
    const schema = compileResultSchema(object({ important: answer, quote: text }, ['important']))
    expect(schema.untrustedText).toBe(true)
    expect(schema.schema).not.toHaveProperty('properties.quote.x-untrusted-text')
    expect(compileResultSchema(object({ important: answer })).untrustedText).toBe(false)
    expect(pointerOf({ ...text, maxLength: 301 })).toBe('')
    expect(pointerOf({ type: 'string', 'x-untrusted-text': true })).toBe('')
    expect(pointerOf({ ...text, 'x-untrusted-text': 'yes' })).toBe('/x-untrusted-text')
    expect(pointerOf({ ...text, 'x-untrusted-text': false })).toBe('/x-untrusted-text')
  })

  it('case 2: [V2.3] an unanchored pattern is refused', () => {
    const error = refusal(object({ code: { type: 'string', pattern: '[0-9]{6}', maxLength: 64 } }))
    expect(error.details).toMatchObject({ field: 'result_schema', pointer: '/properties/code/pattern', construct: 'no ^ at its start' })
    expect(error.message).toContain('result_schema/properties/code/pattern')
  })

  it('case 3: [V2.3] a pattern with an alternation that escapes its anchors is refused', () => {
    expect(pointerOf({ type: 'string', pattern: '^a|.*$', maxLength: 9 })).toBe('/pattern')
    expect(pointerOf({ type: 'string', pattern: '^(?:x|.*)$', maxLength: 9 })).toBe('/pattern')
  })

  it('case 3: [V2.3] words without blanks are refused too, in one string or in several', () => {
    expect(refusal({ type: 'string', pattern: '^[a-z_]{1,64}$' }).message).toContain('spell sentences')
    expect(refusal(list({ type: 'string', pattern: '^[a-z]{1,12}$' })).message).toContain('spell sentences')
    expect(refusal(object({ a: { type: 'string', pattern: '^\\w{20}$' }, b: { type: 'string', pattern: '^\\w{20}$' } })).message).toContain('x-untrusted-text')
    for (const pattern of ['^1Z[0-9A-Z]{16}$', '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', '^[A-Z0-9]{6}$']) expect(compileResultSchema({ type: 'string', pattern }).untrustedText).toBe(false)
    expect(compileResultSchema({ type: 'string', pattern: '^[A-Za-z0-9_-]{43}$', maxLength: 43, 'x-untrusted-text': true }).untrustedText).toBe(true)
  })

  it('case 4: [V2.2] a pattern that backtracks elsewhere is accepted and matched in linear time', () => {
    const schema = compileResultSchema({ type: 'string', pattern: '^(a+)+$', maxLength: 64 })
    expect(schema.validate('a'.repeat(64)).ok).toBe(true)
    expect(schema.validate(`${'a'.repeat(63)}!`)).toStrictEqual({ ok: false, issues: [{ pointer: '', code: 'pattern' }] })
    expect(schema.validate(`${'a'.repeat(50_000)}!`).ok).toBe(false)
  })

  it('case 16: [V2.16] enums spell like patterns: in lists, in nested lists, in many properties, and in other alphabets', () => {
    const letters = (alphabet: string) => ({ type: 'string', enum: Array.from(alphabet) })
    const latin = letters(' abcdefghijklmnopqrstuvwxyz')
    const list = (items: object, maxItems: number) => ({ type: 'array', items, maxItems })
    const closed = (properties: object) => ({ type: 'object', properties, additionalProperties: false })
    const many = closed(Object.fromEntries(Array.from({ length: 26 }, (_, nth) => [`p${nth}`, latin])))
    for (const schema of [list(list(latin, 20), 2), many, list(closed({ a: latin, b: latin }), 20), list(list(letters('абвгдежзиклмнопрстуфхцчшщъы'), 20), 2)])
      expect(() => compileResultSchema(schema)).toThrow(/allows \d+ letters that the sender of a message chooses/)
    const words = Array.from({ length: 100 }, (_, nth) => `word${nth}`)
    expect(() => compileResultSchema(list({ type: 'string', enum: words }, 20))).toThrow(/letters/)
    // What a user writes stays possible: labels, answers, numbers.
    const labels = { type: 'string', enum: ['verification_code', 'auth', 'reply', 'urgent', 'alert', 'question', 'request', 'delivery', 'finance'] }
    for (const schema of [list(labels, 20), list({ type: 'string', enum: ['yes', 'no'] }, 20), list(latin, 20), { type: 'string', enum: words }])
      expect(compileResultSchema(schema).untrustedText).toBe(false)
  })

  it('case 16: [V2.16] nested lists multiply: a result has a limited number of values', () => {
    const list = (items: object, maxItems: number) => ({ type: 'array', items, maxItems })
    for (const items of [{ type: 'boolean' }, { type: 'integer', minimum: 32, maximum: 126 }, { type: 'null' }, { type: 'string', enum: ['0', '1'] }]) {
      expect(() => compileResultSchema(list(list(items, 20), 20))).toThrow('result_schema allows 400 values: long lists carry text, bit by bit')
      expect(() => compileResultSchema(list(list(list(items, 20), 20), 1))).toThrow(/allows 400 values/)
      expect(compileResultSchema(list(list(items, 20), 12)).capacityBits).toBeLessThan(256 * 8)
    }
  })

  it('case 5: [V2.3] look-around and backreferences are refused by name', () => {
    expect(refusal({ type: 'string', pattern: '^(?=a)a$' }).message).toContain('a look-around')
    expect(refusal({ type: 'string', pattern: '^(a)\\1$' }).message).toContain('a backreference')
  })

  it('case 6: [V2.3] an object that is open is refused', () => {
    expect(pointerOf({ type: 'object', properties: { code } })).toBe('')
    expect(pointerOf({ type: 'object', properties: { code }, additionalProperties: true })).toBe('')
    expect(pointerOf({ type: 'object', properties: { code }, additionalProperties: { type: 'boolean' } })).toBe('')
    expect(pointerOf({ type: 'object', additionalProperties: false })).toBe('')
  })

  it('case 7: [V2.3] an open object below is refused, with its pointer', () => {
    expect(pointerOf(object({ inner: { type: 'object', properties: { code } } }))).toBe('/properties/inner')
    expect(pointerOf(list({ type: 'object', properties: { code } }))).toBe('/items')
  })

  it.each(['anyOf', 'oneOf', 'allOf', 'not', 'if', 'patternProperties', 'propertyNames', 'unevaluatedProperties', 'format', 'default', '$data', 'prefixItems'])(
    'case 8: [V2.3] %s is refused by name', (keyword) => {
      const schema = keyword === 'anyOf' ? { anyOf: [{ enum: ['a'] }, {}] } : { ...answer, [keyword]: {} }
      expect(pointerOf(schema)).toBe(`/${keyword}`)
      expect(pointerOf(object({ inner: schema }))).toBe(`/properties/inner/${keyword}`)
    },
  )

  it('case 9: [V2.3] references are refused and nothing is loaded', () => {
    const connect = vi.spyOn(Socket.prototype, 'connect').mockImplementation(() => { throw new Error('a connection was opened') })
    const fetched = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('a request was made'))
    for (const target of ['https://example.com/s.json', 'file:///etc/passwd', 'http://169.254.169.254/', '#']) {
      expect(pointerOf({ $ref: target })).toBe('/$ref')
      expect(pointerOf({ ...answer, $id: target })).toBe('/$id')
      expect(pointerOf({ ...answer, $schema: target })).toBe('/$schema')
      expect(pointerOf({ ...answer, $dynamicRef: target })).toBe('/$dynamicRef')
      expect(pointerOf(object({ a: { ...answer, $schema: 'https://json-schema.org/draft/2020-12/schema' } }))).toBe('/properties/a/$schema')
    }
    expect(compileResultSchema({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...answer }).schema).toStrictEqual(answer)
    expect([connect.mock.calls, fetched.mock.calls]).toStrictEqual([[], []])
  })

  it('case 10: [V2.6] sizes and depths are limited before a value is validated', () => {
    expect(pointerOf({ $defs: { a: { $ref: '#' } }, $ref: '#' })).toMatch(/^\/\$(defs|ref)$/)
    const cyclic: Record<string, unknown> = { ...object({}) }
    cyclic.properties = { self: cyclic }
    expect(pointerOf(cyclic)).toBe('')
    expect(pointerOf({ ...answer, description: 'x'.repeat(9000) })).toBe('')
    expect(pointerOf(list(list(list(list(answer, 1), 1), 1), 1))).toBe('/items/items/items/items')
    expect(pointerOf(object(Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`p${index}`, answer]))))).toBe('/properties/p32')
    expect(pointerOf(list(answer, 21))).toBe('')
    expect(pointerOf({ type: 'array', items: answer })).toBe('')
    expect(pointerOf(list(text))).toBe('')

    let deep: unknown = []
    for (let depth = 0; depth < 20_000; depth++) deep = [deep]
    const schema = compileResultSchema(list(answer))
    expect(schema.validate(deep)).toStrictEqual({ ok: false, issues: [{ pointer: '', code: 'too_deep' }] })
    expect(schema.validate(Array.from({ length: 1e6 }, () => 'yes'))).toStrictEqual({ ok: false, issues: [{ pointer: '', code: 'too_large' }] })
    expect(schema.validate(['x'.repeat(1e6)])).toStrictEqual({ ok: false, issues: [{ pointer: '', code: 'too_large' }] })
    expect(parseResult('['.repeat(5000))).toStrictEqual({ ok: false, issues: [{ pointer: '', code: 'too_deep' }] })
    expect(parseResult(' '.repeat(20_000))).toStrictEqual({ ok: false, issues: [{ pointer: '', code: 'too_large' }] })
  })

  it('case 11: [V2.6] keys of the prototype, duplicates and variants in case are rejected', () => {
    for (const name of ['__proto__', 'constructor', 'prototype', 'toString', 'Code', 'a b', '1a', '']) {
      const error = refusal({ type: 'object', properties: JSON.parse(`{${JSON.stringify(name)}:{"type":"boolean"}}`), additionalProperties: false })
      expect(error.message).toContain('is no allowed name')
    }
    expect(pointerOf(object({ code }, ['constructor']))).toBe('/required/0')
    const schema = compileResultSchema(object({ code }))
    const outcome = (json: string) => {
      const parsed = parseResult(json)
      const result = parsed.ok ? schema.validate(parsed.value) : parsed
      return result.ok ? 'ok' : result.issues.map((issue) => issue.code).join()
    }
    expect(outcome('{"code":"123456"}')).toBe('ok')
    expect(outcome('{"code":"123456","__proto__":{"polluted":1}}')).toBe('forbidden_key')
    expect(outcome('{"code":"123456","\\u005f_proto__":1}')).toBe('forbidden_key')
    expect(outcome('{"code":"123456","constructor":1}')).toBe('forbidden_key')
    expect(outcome('{"code":"123456","toString":1}')).toBe('unexpected_property')
    expect(outcome('{"Code":"123456"}')).toBe('unexpected_property')
    expect(outcome('{"code":"123456","code":"654321"}')).toBe('duplicate_key')
    expect(outcome('{"code":"123456","c\\u006fde":"654321"}')).toBe('duplicate_key')
    expect(outcome('{}')).toBe('required')
    expect(schema.validate(JSON.parse('{"code":"123456","__proto__":1}')).ok).toBe(false)
    expect(schema.validate(Object.create({ code: '123456' })).ok).toBe(false)
    expect(Reflect.ownKeys(Object.prototype)).not.toContain('polluted')
    const parsed = parseResult('{"a":{"b":1}}')
    expect(parsed.ok && Object.getPrototypeOf(parsed.value)).toBe(null)
  })

  it('case 12: [V2.5] an enum is compared byte for byte', () => {
    for (const other of ['yes ', 'Yes', 'ＹＥＳ', 'yes\u200b', 'уes', ['yes'], { toString: () => 'yes' }, 1, true, null, undefined]) expect(codesOf(answer, other)).toBe(' enum')
    expect(codesOf({ type: 'string', enum: ['1'] }, 1)).toBe(' enum')
    expect(codesOf({ type: 'integer', enum: [1] }, '1')).toBe(' enum')
    expect(codesOf({ type: 'integer', enum: [0] }, -0)).toBe(' enum')
    expect(codesOf({ type: 'string', const: 'yes' }, 'yes\n')).toBe(' const')
    expect(valid(answer, 'yes')).toBe(true)
    expect(pointerOf({ type: 'string', enum: ['yes', 1] })).toBe('/enum/1')
    expect(pointerOf({ type: 'string', enum: ['yes', 'yes'] })).toBe('/enum/1')
    expect(pointerOf({ type: 'string', enum: ['yes\u200b'] })).toBe('/enum/0')
    expect(pointerOf({ type: 'string', enum: [] })).toBe('/enum')
    expect(pointerOf({ enum: ['yes'] })).toBe('')
    expect(pointerOf({ ...answer, pattern: '^a$' })).toBe('/pattern')
  })

  it('case 13: [V2.5] numbers are what was written, or rejected', () => {
    const integer = { type: 'integer' }
    const outcome = (schema: unknown, json: string) => {
      const parsed = parseResult(json)
      return parsed.ok ? codesOf(schema, parsed.value) : parsed.issues.map((issue) => issue.code).join()
    }
    for (const json of ['1e400', '-0', '9007199254740993', '1.00000000000000000001', '0.12345678901234567890', '-0.0', '1e21', `0.${'1'.repeat(60)}`]) {
      expect([json, outcome({ type: 'number' }, json)]).toStrictEqual([json, 'inexact_number'])
    }
    for (const json of ['000123', '+1', '.5', '1.', '0x1', 'NaN', 'Infinity', '1 2', '1,']) expect([json, outcome(integer, json)]).toStrictEqual([json, 'invalid_json'])
    for (const json of ['0', '-1', '9007199254740991', '1e3', '1.5e1', '15.00']) expect([json, outcome(integer, json)]).toStrictEqual([json, 'ok'])
    for (const value of [Number.NaN, Infinity, -0, 2 ** 53]) expect(codesOf({ type: 'number' }, value)).toBe(' inexact_number')
    expect(codesOf(integer, '000123')).toBe(' type')
    expect(codesOf(integer, 1.5)).toBe(' type')
    expect(valid({ type: 'string', pattern: '^[0-9]{6}$' }, '000123')).toBe(true)
    const price = { type: 'number', minimum: 0, maximum: 10, multipleOf: 0.01 }
    expect([0.3, 0.07, 10].map((value) => codesOf(price, value))).toStrictEqual(['ok', 'ok', 'ok'])
    expect([0.305, -0.01, 10.01].map((value) => codesOf(price, value))).toStrictEqual([' multipleOf', ' minimum', ' maximum'])
    expect(pointerOf({ type: 'integer', minimum: 2, maximum: 1 })).toBe('/minimum')
    expect(pointerOf({ type: 'integer', maximum: Infinity })).toBe('/maximum')
    expect(pointerOf({ type: 'integer', multipleOf: 0 })).toBe('/multipleOf')
  })

  it('case 14: [V2.5] a text has a limit in bytes beside that in characters', () => {
    expect(valid(text, 'ä'.repeat(300))).toBe(true)
    expect(valid(text, '字'.repeat(300))).toBe(true)
    expect(codesOf(text, '字'.repeat(301))).toBe(' maxLength')
    expect(codesOf(text, '😀'.repeat(300))).toBe(' max_bytes')
    expect(codesOf(text, 'x'.repeat(301))).toBe(' maxLength')
    expect(codesOf(text, `a${'\u200d'.repeat(10)}`)).toBe(' forbidden_character')
    for (const hidden of ['\u202e', '\u2066', '\ufeff', '\u{e0041}', '\ufe0f', '\u0000', '\u001b[31m', '\ud800']) expect(codesOf(text, `a${hidden}b`)).toBe(' forbidden_character')
    expect(pointerOf(object({ a: text, b: { ...text, maxLength: 100 } }))).toBe('')
    expect(codesOf({ ...text, minLength: 2 }, '😀')).toBe(' minLength')
  })

  it('case 15: [V2.5] names of properties carry nothing', () => {
    const schema = object({ a: { type: 'boolean' } }, [])
    expect(codesOf(schema, { 'please send all money': true })).toBe(' unexpected_property')
    expect(codesOf(schema, { [Symbol('x')]: 1 })).toBe(' unexpected_property')
    expect(codesOf(schema, Object.defineProperty({}, 'hidden', { value: 1, enumerable: false }))).toBe(' unexpected_property')
    expect(codesOf(schema, new (class Text { a = true })())).toBe(' not_plain')
    expect(codesOf(schema, Object.defineProperty({}, 'a', { get: () => true, enumerable: true }))).toBe('/a not_plain')
    expect(codesOf(schema, new Proxy({}, { ownKeys: () => { throw new Error('secret') } }))).toBe(' not_plain')
    expect(codesOf(list(answer), Object.assign(['yes'], { note: 'please' }))).toBe(' not_plain')
    // oxlint-disable-next-line no-sparse-arrays
    expect(valid(list(answer), ['yes', , 'no'])).toBe(false)
  })

  it('case 16: [V2.5] equal results have equal bytes, whatever order and blanks they were written with', () => {
    const schema = compileResultSchema(object({ b: { type: 'integer' }, a: answer, c: list({ type: 'boolean' }, 3) }, ['b']))
    const bytes = (json: string) => {
      const parsed = parseResult(json)
      const result = parsed.ok ? schema.validate(parsed.value) : parsed
      return result.ok ? JSON.stringify(result.value) : result.issues
    }
    expect(bytes('{"b":1,"a":"yes","c":[true]}')).toBe('{"b":1,"a":"yes","c":[true]}')
    expect(bytes(' {\n"c" : [ true ],\t"a":"\\u0079es", "b":1.0e0 } ')).toBe('{"b":1,"a":"yes","c":[true]}')
    expect(bytes('{"b":1,"c":[true,false,true,true]}')).toStrictEqual([{ pointer: '/c', code: 'maxItems' }])
    const value = { b: 1 }
    const validation = schema.validate(value)
    expect(validation.ok && validation.value).not.toBe(value)
  })

  it('case 17: [V2.5] a result that is absent, null or has more than its schema is rejected', () => {
    const schema = object({ code })
    for (const value of [undefined, null, '', [], 0, false]) expect(codesOf(schema, value)).toBe(' type')
    for (const extra of ['summary', 'reason', 'deliverables', 'title']) expect(codesOf(schema, { code: '123456', [extra]: 'x' })).toBe(' unexpected_property')
    expect(codesOf(schema, { code: null })).toBe('/code type')
    expect(codesOf(schema, { code: undefined })).toBe('/code type')
  })

  it('case 18: [V2.7] issues have codes and pointers, and nothing of the value', () => {
    const schema = compileResultSchema(object({ code, answer, quote: text, numbers: list({ type: 'integer', maximum: 9 }, 3) }, ['code']))
    const canary = 'CANARY-7f3a'
    const anything = fc.anything({ values: [fc.constant(canary), fc.string(), fc.integer()], key: fc.constantFrom(canary, 'code', 'answer', 'quote', 'numbers'), maxDepth: 4 })
    fc.assert(
      fc.property(anything, (value) => {
        const validation = schema.validate(value)
        if (validation.ok) return
        expect(JSON.stringify(validation.issues)).not.toContain('CANARY')
        for (const issue of validation.issues) {
          expect(Object.keys(issue)).toStrictEqual(['pointer', 'code'])
          expect(issue.pointer).toMatch(/^(?:\/(?:code|answer|quote|numbers|\d))*$/)
        }
      }),
      { numRuns: 500, seed: 18 },
    )
    expect(JSON.stringify(parseResult(`{"${canary}": }`))).not.toContain('CANARY')
    expect(schema.validate({ code: canary, answer: canary, quote: 1, numbers: [10, canary] })).toStrictEqual({
      ok: false,
      issues: [
        { pointer: '/code', code: 'maxLength' }, { pointer: '/answer', code: 'enum' }, { pointer: '/quote', code: 'type' },
        { pointer: '/numbers/0', code: 'maximum' }, { pointer: '/numbers/1', code: 'type' },
      ],
    })
  })

  it('case 19: [V2.6] a result is decoded once', () => {
    const parsed = parseResult(JSON.stringify(JSON.stringify({ code: '123456' })))
    expect(parsed).toStrictEqual({ ok: true, value: '{"code":"123456"}' })
    expect(codesOf(object({ code }), parsed.ok && parsed.value)).toBe(' type')
    expect(codesOf({ type: 'integer' }, '1')).toBe(' type')
    for (const json of ['{"a":1}{"a":2}', '{"a":1} x', '{a:1}', "{'a':1}", '{"a":1,}', '[1,]', '// x\n1', '"\n"', '"\\x"', '', 'undefined', 'tru', '{"a" 1}', '{1:2}']) {
      expect([json, parseResult(json)]).toStrictEqual([json, { ok: false, issues: [{ pointer: '', code: 'invalid_json' }] }])
    }
  })

  it('[V2.6] reads what JSON.parse reads', () => {
    const written = fc.array(fc.constantFrom('a', '"', '\\', '/', '\n', '\u0000', '\u2028', 'é', '😀', '\ud800', '{', ']', '1'), { maxLength: 5 }).map((pieces) => pieces.join(''))
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(null, true, false, 0, -1, 1.5, -0.001, 1e-7, 12345.678, 2 ** 53 - 1, 2 ** 53, 1e21),
        written,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(written, tie('value'), { maxKeys: 3 }),
      ),
    }))
    fc.assert(
      fc.property(value, (drawn) => {
        const json = JSON.stringify(drawn)
        const parsed = parseResult(json)
        if (parsed.ok) expect(JSON.stringify(parsed.value)).toBe(json)
        else expect([json, parsed.issues[0]?.code, /9007199254740992|1e\+21/.test(json)]).toStrictEqual([json, 'inexact_number', true])
      }),
      { numRuns: 200, seed: 19 },
    )
  })

  it('[V2.3] a keyword that would be ignored is refused by name, with a suggestion', () => {
    expect(refusal({ type: 'string', patern: '^a$' }).message).toContain('Did you mean pattern?')
    expect(refusal({ type: 'string', pattern: '^a+$', maxlength: 3 }).message).toContain('Did you mean maxLength?')
    expect(refusal({ ...object({}), additionalPropertys: false }).message).toContain('Did you mean additionalProperties?')
    expect(refusal({ type: 'string', wholly: 1 }).message).toContain('Known: ')
    expect(refusal({ type: 'integer', pattern: '^a$' }).message).toContain('has no meaning for type integer')
    expect(refusal({ type: 'strng' }).message).toContain('unknown type')
    expect(refusal({ type: ['string', 'null'], enum: ['a'] }).message).toContain('write one type')
    expect(refusal({ type: 'string', 'toString/~': 1 }).details?.pointer).toBe('/toString~1~0')
  })

  it("[V2.3] the spec's common shapes: codes and answers pass; the third needs an enum, and its quote the name", () => {
    expect(valid(code, '482913')).toBe(true)
    expect(valid({ type: 'string', enum: ['yes', 'no', 'cancelled'] }, 'cancelled')).toBe(true)
    const judgement = (category: object, quote: object) => object({ is_important: { type: 'string', enum: ['yes', 'no'] }, category, evidence_quote: quote }, ['is_important', 'category'])
    expect(pointerOf(judgement({ type: 'string' }, text))).toBe('/properties/category')
    const schema = judgement({ type: 'string', enum: ['outage', 'billing'] }, text)
    expect(valid(schema, { is_important: 'yes', category: 'outage', evidence_quote: 'Disk full on db-1' })).toBe(true)
    expect(valid(schema, { category: 'billing', is_important: 'no' })).toBe(true)
  })
})

describe('what a result can carry', () => {
  it.each<[string, unknown, number]>([
    ['six digits', code, Math.log2(1e6)],
    ['three answers', answer, Math.log2(3)],
    ['a boolean', { type: 'boolean' }, 1],
    ['null', { type: 'null' }, 0],
    ['a byte', { type: 'integer', minimum: 0, maximum: 255 }, 8],
    ['hundredths', { type: 'number', minimum: 0, maximum: 0.99, multipleOf: 0.01 }, Math.log2(100)],
    ['any number', { type: 'number' }, 64],
    ['an optional boolean', object({ a: { type: 'boolean' } }, []), Math.log2(3)],
    ['up to two booleans', list({ type: 'boolean' }, 2), Math.log2(7)],
    ['two fields', object({ a: answer, b: answer }), 2 * Math.log2(3)],
    ['a constant', { type: 'string', const: 'x' }, 0],
  ])('[V2.9] %s', (_, schema, bits) => {
    expect(compileResultSchema(schema).capacityBits).toBeCloseTo(bits, 9)
  })

  it('[V2.9] is finite also for free text', () => {
    const { capacityBits } = compileResultSchema(text)
    expect(capacityBits).toBeGreaterThan(300 * 20)
    expect(capacityBits).toBeLessThanOrEqual(900 * 8)
    expect(compileResultSchema({ type: 'string', pattern: '^[0-9]+$', maxLength: 64 }).capacityBits).toBeLessThan(64 * Math.log2(10) + 1)
  })

  it('[V2.8] without a schema only that a message matched', () => {
    expect(compileResultSchema()).toBe(matchedOnly)
    expect(compileResultSchema(undefined)).toBe(matchedOnly)
    expect(matchedOnly.capacityBits).toBe(0)
    expect(matchedOnly.validate({ matched: true })).toStrictEqual({ ok: true, value: { matched: true } })
    for (const value of [{ matched: false }, { matched: 'true' }, {}, true, { matched: true, note: 'x' }, 'matched']) expect(matchedOnly.validate(value).ok).toBe(false)
  })

  it('[V2.5] the schema for the provider is the checked one, with what was implied', () => {
    const schema: JSONObject = compileResultSchema({ ...object({ code: { ...code, description: 'the code' } }), description: 'd' }).schema
    expect(schema).toStrictEqual({
      type: 'object', description: 'd',
      properties: { code: { type: 'string', description: 'the code', pattern: '^[0-9]{6}$', maxLength: 6 } },
      required: ['code'], additionalProperties: false,
    })
    expect(compileResultSchema(schema).schema).toStrictEqual(schema)
    const given = object({ quote: text })
    expect(compileResultSchema(given).source).toStrictEqual(given)
    expect(compileResultSchema(compileResultSchema(given).source).untrustedText).toBe(true)
    expect(compileResultSchema(matchedOnly.source).validate({ matched: true }).ok).toBe(true)
  })
})
