import type { JSONSchema7 } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { argumentsSchema } from './provider-schema.ts'
import { compileSchema } from './compile.ts'

const text: JSONSchema7 = { type: 'string' }
const of = async (schema: z.ZodType) => argumentsSchema(await compileSchema(schema, 'it').jsonSchema())

it('is unchanged for an object', () => {
  const schema: JSONSchema7 = { type: 'object', properties: { a: text } }
  expect(argumentsSchema(schema)).toBe(schema)
  expect(argumentsSchema({ properties: { a: text } })).toEqual({ ...schema, properties: { a: text } })
  expect(argumentsSchema({})).toEqual({ type: 'object' })
  expect(argumentsSchema({ type: ['object', 'null'], properties: {} })).toEqual({ type: 'object', properties: {} })
})

it('of a choice of objects is one object with the fields of all', async () => {
  const shape = z.discriminatedUnion('kind', [z.object({ kind: z.literal('move'), to: z.string(), note: z.string() }), z.object({ kind: z.literal('stop'), note: z.string().optional() })])
  expect(await of(shape)).toEqual({
    type: 'object',
    properties: { kind: { anyOf: [{ type: 'string', const: 'move' }, { type: 'string', const: 'stop' }] }, to: text, note: text },
    required: ['kind'],
    additionalProperties: false,
  })
  expect(await of(z.object({ a: z.string() }).nullable())).toEqual({ type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false })
  expect(await of(z.union([z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]), z.object({ c: z.string() })]))).toEqual({ type: 'object', properties: { a: text, b: text, c: text }, additionalProperties: false })
})

it('of an intersection of objects is one object with all required fields', async () => {
  expect(await of(z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })))).toMatchObject({ type: 'object', properties: { a: text, b: { type: 'number' } }, required: ['a', 'b'] })
})

it('keeps the keywords beside a choice, and resolves its references', () => {
  const schema: JSONSchema7 = {
    description: 'Find it.', type: 'object', properties: { path: text }, required: ['path'],
    anyOf: [{ required: ['id'], properties: { id: text } }, { $ref: '#/definitions/named' }],
    definitions: { named: { type: 'object', properties: { name: text }, required: ['name'] } },
  }
  const before = structuredClone(schema)
  expect(argumentsSchema(schema)).toEqual({ description: 'Find it.', type: 'object', properties: { path: text, id: text, name: text }, required: ['path'], definitions: schema.definitions })
  expect(argumentsSchema({ $ref: '#/definitions/named', definitions: schema.definitions ?? {} })).toEqual({ type: 'object', properties: { name: text }, required: ['name'], definitions: schema.definitions })
  expect(schema).toEqual(before)
})

it.each<[string, JSONSchema7]>([
  ['a text', text],
  ['a list', { type: 'array', items: text }],
  ['values', { enum: ['a', 'b'] }],
  ['a choice of texts', { anyOf: [text, { type: 'number' }] }],
  ['what it does not have', { $ref: '#/definitions/gone' }],
])('is undefined for %s', (_, schema) => {
  expect(argumentsSchema(schema)).toBeUndefined()
})
