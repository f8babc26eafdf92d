import type { JSONSchema7 } from '@ai-sdk/provider'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { compileSchema, jsonSchemaValidator } from './compile.ts'
import { hasObjectRoot, wrapRoot } from './provider-schema.ts'

it.each<[string, boolean, JSONSchema7]>([
  ['an object', true, { type: 'object' }],
  ['an object without a type', true, { properties: {} }],
  ['a list', false, { type: 'array' }],
  ['a choice of objects', false, { anyOf: [{ type: 'object' }] }],
  ['an object or nothing', false, { type: ['object', 'null'], properties: {} }],
  ['a reference to an object', false, { $ref: '#/definitions/o', definitions: { o: { type: 'object' } } }],
])('%s is a root that providers accept: %s', (_, taken, schema) => {
  expect(hasObjectRoot(schema)).toBe(taken)
  expect(hasObjectRoot(wrapRoot(schema))).toBe(true)
})

it('wraps a schema into an object with one field', () => {
  const given: JSONSchema7 = { $schema: 'http://json-schema.org/draft-07/schema#', type: 'string', enum: ['a', 'b'] }
  expect(wrapRoot(given)).toEqual({
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: { value: { type: 'string', enum: ['a', 'b'] } },
    required: ['value'],
    additionalProperties: false,
  })
  expect(given).toHaveProperty('$schema')
})

const tree = z.array(z.object({ name: z.string(), get below() { return tree } }))
const word: JSONSchema7 = { type: 'string' }
it.each<[string, JSONSchema7, unknown, unknown]>([
  ['itself', await compileSchema(tree, 'it').jsonSchema(), [{ name: 'a', below: [{ name: 'b', below: [] }] }], [{ name: 'a', below: [{ name: 'b', below: 1 }] }]],
  ['a part of itself', { type: 'array', items: [{ type: 'string' }, { $ref: '#/items/0' }] }, ['a', 'b'], ['a', 1]],
  ['its definitions', { type: 'array', items: { $ref: '#/definitions/value' }, definitions: { value: word } }, ['a'], [1]],
  ['definitions of the newer name', { type: 'array', items: { $ref: '#/$defs/word' }, $defs: { word } }, ['a'], [1]],
  ['itself from its definitions', { anyOf: [word, { $ref: '#/definitions/value' }], definitions: { value: { type: 'array', items: { $ref: '#' } } } }, ['a', ['b', []]], ['a', [1]]],
])('keeps references to %s', async (_, schema, good, bad) => {
  const before = structuredClone(schema)
  const check = await jsonSchemaValidator(wrapRoot(schema))
  expect(check({ value: good })).toMatchObject({ ok: true })
  expect(check({ value: bad })).toMatchObject({ ok: false })
  expect(check(good)).toMatchObject({ ok: false })
  expect(schema).toEqual(before)
})
