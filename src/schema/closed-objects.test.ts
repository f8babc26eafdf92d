import { expect, it } from 'vitest'
import { closedObjects } from './closed-objects.ts'

it('closes objects wherever they stand, and changes nothing that it was given', () => {
  const inner = { type: 'object' as const, properties: { a: { type: 'string' as const } } }
  const closed = { ...inner, additionalProperties: false }
  const given = { definitions: { d: inner }, anyOf: [inner, true], oneOf: [inner], items: [inner, { type: 'string' as const }], additionalProperties: inner }
  const before = structuredClone(given)
  expect(closedObjects(given)).toEqual({
    definitions: { d: closed }, anyOf: [closed, true], oneOf: [closed], items: [closed, { type: 'string' }], additionalProperties: closed,
  })
  expect(given).toEqual(before)
})

it('leaves alone what says what else it may hold', () => {
  const open = { type: 'object' as const, properties: {}, additionalProperties: true }
  expect(closedObjects(open)).toEqual(open)
  expect(closedObjects({ type: 'object' })).toEqual({ type: 'object' })
})

it('leaves the parts of an intersection open: each would refuse what the others allow', () => {
  const part = (name: string) => ({ type: 'object' as const, properties: { [name]: { type: 'object' as const, properties: {} } } })
  expect(closedObjects({ allOf: [part('x'), part('y')] })).toEqual({
    allOf: ['x', 'y'].map((name) => ({ type: 'object', properties: { [name]: { type: 'object', properties: {}, additionalProperties: false } } })),
  })
})
