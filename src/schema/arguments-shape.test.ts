import type { JSONSchema7 } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { argumentsShape } from './arguments-shape.ts'
import { compileSchema } from './compile.ts'

const text: JSONSchema7 = { type: 'string' }
const of = async (schema: z.ZodType) => argumentsShape(await compileSchema(schema, 'it').jsonSchema())

it('is what it was for an object', () => {
  const schema: JSONSchema7 = { type: 'object', properties: { a: text } }
  expect(argumentsShape(schema)).toBe(schema)
  expect(argumentsShape({ properties: { a: text } })).toEqual({ ...schema, properties: { a: text } })
  expect(argumentsShape({})).toEqual({ type: 'object' })
  expect(argumentsShape({ type: ['object', 'null'], properties: {} })).toEqual({ type: 'object', properties: {} })
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

it('of objects that are all meant is one with all that they require', async () => {
  expect(await of(z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })))).toMatchObject({ type: 'object', properties: { a: text, b: { type: 'number' } }, required: ['a', 'b'] })
})

it('keeps what stands beside a choice, and what it refers to', () => {
  const schema: JSONSchema7 = {
    description: 'Find it.', type: 'object', properties: { path: text }, required: ['path'],
    anyOf: [{ required: ['id'], properties: { id: text } }, { $ref: '#/definitions/named' }],
    definitions: { named: { type: 'object', properties: { name: text }, required: ['name'] } },
  }
  const before = structuredClone(schema)
  expect(argumentsShape(schema)).toEqual({ description: 'Find it.', type: 'object', properties: { path: text, id: text, name: text }, required: ['path'], definitions: schema.definitions })
  expect(argumentsShape({ $ref: '#/definitions/named', definitions: schema.definitions ?? {} })).toEqual({ type: 'object', properties: { name: text }, required: ['name'], definitions: schema.definitions })
  expect(schema).toEqual(before)
})

it.each<[string, JSONSchema7]>([
  ['a text', text],
  ['a list', { type: 'array', items: text }],
  ['values', { enum: ['a', 'b'] }],
  ['a choice of texts', { anyOf: [text, { type: 'number' }] }],
  ['what it does not have', { $ref: '#/definitions/gone' }],
])('is none for %s', (_, schema) => {
  expect(argumentsShape(schema)).toBeUndefined()
})
