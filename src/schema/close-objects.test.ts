import { expect, it } from 'vitest'
import { closeObjects } from './provider-schema.ts'

it('closes objects at every depth, and doesn’t change its input', () => {
  const inner = { type: 'object' as const, properties: { a: { type: 'string' as const } } }
  const closed = { ...inner, additionalProperties: false }
  const given = { definitions: { d: inner }, anyOf: [inner, true], oneOf: [inner], items: [inner, { type: 'string' as const }], additionalProperties: inner }
  const before = structuredClone(given)
  expect(closeObjects(given)).toEqual({
    definitions: { d: closed }, anyOf: [closed, true], oneOf: [closed], items: [closed, { type: 'string' }], additionalProperties: closed,
  })
  expect(given).toEqual(before)
})

it('keeps additionalProperties where it is set', () => {
  const open = { type: 'object' as const, properties: {}, additionalProperties: true }
  expect(closeObjects(open)).toEqual(open)
  expect(closeObjects({ type: 'object' })).toEqual({ type: 'object' })
})

it('leaves the parts of an intersection open: each would reject the properties of the others', () => {
  const part = (name: string) => ({ type: 'object' as const, properties: { [name]: { type: 'object' as const, properties: {} } } })
  expect(closeObjects({ allOf: [part('x'), part('y')] })).toEqual({
    allOf: ['x', 'y'].map((name) => ({ type: 'object', properties: { [name]: { type: 'object', properties: {}, additionalProperties: false } } })),
  })
})
