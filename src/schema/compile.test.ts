import { jsonSchema, zodSchema } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { compileSchema, describeIssues } from './compile.ts'

const shape = z.object({ city: z.string(), zip: z.number().optional() })

describe('a schema', () => {
  it.each([
    ['of a schema library', shape],
    ['of the AI SDK', zodSchema(shape)],
    ['of the AI SDK, made when needed', () => zodSchema(shape)],
    ['in JSON, of the AI SDK', jsonSchema({ type: 'object', properties: { city: { type: 'string' }, zip: { type: 'number' } }, required: ['city'] })],
    ['in JSON', { type: 'object', properties: { city: { type: 'string' }, zip: { type: 'number' } }, required: ['city'] }],
    ['in JSON, without a type', { properties: { city: { type: 'string' } }, required: ['city'] }],
  ])('%s validates, and converts to JSON Schema', async (_, schema) => {
    const compiled = compileSchema(schema, 'it')
    expect(await compiled.validate({ city: 'Bern' })).toEqual({ ok: true, value: { city: 'Bern' } })
    expect(await compiled.validate({})).toMatchObject({ ok: false, issues: [{ message: expect.any(String) }] })
    expect(await compiled.jsonSchema()).toMatchObject({ properties: { city: { type: 'string' } }, required: ['city'] })
  })

  it.each([
    ['a choice', { anyOf: [{ type: 'string' }, { type: 'number' }] }, 'a', true],
    ['one of several', { oneOf: [{ type: 'string' }, { type: 'number' }] }, 1, true],
    ['all of several', { allOf: [{ type: 'string' }, { minLength: 2 }] }, 'ab', 'a'],
    ['a list of values', { enum: ['a', 'b'] }, 'b', 'c'],
    ['several types', { type: ['string', 'null'] }, null, 1],
    ['a reference', { $ref: '#/definitions/word', definitions: { word: { type: 'string' } } }, 'a', 1],
  ])('in JSON may be %s', async (_, schema, good, bad) => {
    const compiled = compileSchema(schema, 'it')
    expect(await compiled.validate(good)).toEqual({ ok: true, value: good })
    expect(await compiled.validate(bad)).toMatchObject({ ok: false })
  })

  it('is compiled once', () => {
    expect(compileSchema(shape, 'it')).toBe(compileSchema(shape, 'it again'))
  })

  it('has the path of each issue', async () => {
    const nested = compileSchema(z.object({ a: z.object({ b: z.array(z.number()) }) }), 'it')
    const checked = await nested.validate({ a: { b: [1, 'x'] } })
    expect(checked).toMatchObject({ ok: false, issues: [{ path: 'a.b.1' }] })
    const plain = compileSchema({ type: 'object', properties: { a: { type: 'object', properties: { b: { type: 'integer' } } } } }, 'it')
    expect(await plain.validate({ a: { b: 'x' } })).toEqual({ ok: false, issues: [{ path: 'a.b', message: 'must be integer' }] })
    expect(describeIssues([{ path: 'a.b', message: 'must be integer' }, { path: '', message: 'too big' }])).toBe('a.b: must be integer; too big')
  })

  it('may validate asynchronously', async () => {
    const slow = compileSchema(z.string().refine(async (text) => text === 'yes', 'must be yes'), 'it')
    expect(await slow.validate('yes')).toEqual({ ok: true, value: 'yes' })
    expect(await slow.validate('no')).toEqual({ ok: false, issues: [{ path: '', message: 'must be yes' }] })
  })

  it('of objects forbids additional properties, as providers require', async () => {
    const converted = await compileSchema(
      z.object({
        list: z.array(z.object({ n: z.number() })),
        either: z.union([z.object({ a: z.string() }), z.null()]),
        open: z.looseObject({ k: z.string() }),
        map: z.record(z.string(), z.object({ v: z.number() })),
      }),
      'it',
    ).jsonSchema()
    expect(converted).toMatchObject({
      additionalProperties: false,
      properties: {
        list: { items: { additionalProperties: false } },
        either: { anyOf: [{ additionalProperties: false }, { type: 'null' }] },
        open: { additionalProperties: {} },
        map: { additionalProperties: { properties: { v: {} }, additionalProperties: false } },
      },
    })
    expect(converted).not.toHaveProperty('$schema')
  })

  it('in JSON is passed on unchanged', async () => {
    const written = { type: 'object', properties: { a: { type: 'object', properties: {} } } }
    expect(await compileSchema(written, 'it').jsonSchema()).toBe(written)
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'string'],
    ['an empty object', {}],
    ['an unknown type', { type: 'banana' }],
    ['no type of several', { type: ['string', 'banana'] }],
    ['an empty choice', { anyOf: [] }],
    ['a class', class Shape {}],
    ['a function that fails', () => { throw new Error('x') }],
    ['a function that returns nothing', () => undefined],
    ['an unknown version of the standard', { '~standard': { version: 2 } }],
  ])('is not %s', (_, schema) => {
    expect(() => compileSchema(schema, "inputSchema of tool 'x'")).toThrow(expect.objectContaining({ code: 'invalid_schema', message: expect.stringContaining("inputSchema of tool 'x' is not a schema") }))
  })

  it('that can\'t be converted to JSON Schema is rejected when that is needed', () => {
    const mute = compileSchema({ '~standard': { version: 1, vendor: 'mute', validate: (value: unknown) => ({ value }) } }, 'it')
    expect(() => mute.jsonSchema()).toThrow(expect.objectContaining({ code: 'invalid_schema', message: expect.stringContaining('Standard JSON Schema') }))
    expect(() => compileSchema(z.object({ at: z.date() }), 'it').jsonSchema()).toThrow(expect.objectContaining({ code: 'invalid_schema' }))
  })

  it('in JSON that can\'t be compiled is rejected on first use', async () => {
    const typo = compileSchema({ type: 'object', properties: { a: { type: 'banana' } } }, 'it')
    await expect(typo.validate({})).rejects.toMatchObject({ code: 'invalid_schema' })
  })

  it('in JSON may name its draft, and use the keywords of the draft', async () => {
    const tuple = (keyword: object, $schema: string) => compileSchema({ $schema, type: 'object', properties: { pair: { type: 'array', ...keyword } } }, 'it')
    const newest = tuple({ prefixItems: [{ type: 'string' }, { type: 'number' }] }, 'https://json-schema.org/draft/2020-12/schema')
    const oldest = tuple({ items: [{ type: 'string' }, { type: 'number' }] }, 'http://json-schema.org/draft-07/schema#')
    for (const schema of [newest, oldest]) {
      expect(await schema.validate({ pair: ['a', 1] })).toMatchObject({ ok: true })
      expect(await schema.validate({ pair: [1, 'a'] })).toMatchObject({ ok: false })
    }
    const middle = compileSchema({ $schema: 'https://json-schema.org/draft/2019-09/schema', type: 'object', properties: { a: {} }, dependentRequired: { a: ['b'] } }, 'it')
    expect(await middle.validate({ a: 1 })).toMatchObject({ ok: false })
  })
})
