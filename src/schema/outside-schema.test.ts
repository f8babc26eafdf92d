import { describe, expect, it } from 'vitest'
import { compileSchema } from './compile.ts'
import { acceptOutsideSchema, markOutsideSchema } from './outside-schema.ts'
import type { PlainJSONSchema } from './schema.ts'

const problemOf = (schema: unknown): string => {
  try {
    acceptOutsideSchema(schema, 'schema')
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_schema', details: { schema: 'schema' } })
    return (error as Error).message
  }
  return ''
}

/** Each definition refers twice to the next: 2^40 ways through 40 of them. */
const doubling = (levels: number) => ({
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(Array.from({ length: levels }, (_, level) =>
    [`d${level}`, level === levels - 1 ? { type: 'string' } : { anyOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }] }])),
})

const nested = (levels: number): object => (levels === 0 ? { type: 'string' } : { type: 'object', properties: { a: nested(levels - 1) } })
const properties = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { type: 'string' }]))

describe('a schema from outside', () => {
  it.each<[string, unknown, string]>([
    ['40 nested choices of references', doubling(40), 'levels deep'],
    ['12 nested choices of references', doubling(12), 'subschemas'],
    ['20,000 properties', { type: 'object', properties: properties(20_000) }, 'properties'],
    ['many objects of many properties', { type: 'object', properties: Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`o${at}`, { type: 'object', properties: properties(400) }])) }, 'subschemas'],
    ['a deep schema', nested(40), 'levels deep'],
    ['a pattern that backtracks', { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }, 'several ways'],
    ['a property pattern that backtracks', { type: 'object', patternProperties: { '^(a+)+$': { type: 'string' } } }, 'several ways'],
    ['a remote reference', { $ref: 'http://127.0.0.1/schema.json' }, 'must refer to a part'],
    ['a reference to nothing', { $ref: '#/$defs/none' }, 'refers to no part'],
    ['a reference to itself', { anyOf: [{ type: 'string' }, { $ref: '#' }] }, 'refers to itself'],
    ['a circle of references', { $ref: '#/$defs/a', $defs: { a: { allOf: [{ $ref: '#/$defs/b' }] }, b: { $ref: '#/$defs/a' } } }, 'refers to itself'],
    ['a dynamic reference', { type: 'object', properties: { a: { $dynamicRef: '#x' } } }, 'not allowed'],
    ['an id below the root', { type: 'object', properties: { a: { $id: 'http://x/y' } } }, 'not allowed'],
    ['too many values', { enum: Array.from({ length: 1_001 }, (_, index) => index) }, 'values'],
    ['a text', 'object', 'not a JSON Schema'],
  ])('[H7.1] with %s is rejected by name', (_, schema, problem) => {
    expect(problemOf(schema)).toContain(problem)
  })

  it('[H7.1] of usual size is accepted, a tree included, and validates as any other', async () => {
    const tree: PlainJSONSchema = {
      $ref: '#/$defs/node',
      $defs: { node: { type: 'object', properties: { name: { type: 'string', pattern: '^[a-z]+(-[a-z]+)*$' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } }, required: ['name'] } },
    }
    const { validate } = compileSchema(acceptOutsideSchema(tree, 'schema'), 'schema')
    expect(await validate({ name: 'a', children: [{ name: 'b-c', children: [] }] })).toEqual({ ok: true, value: { name: 'a', children: [{ name: 'b-c', children: [] }] } })
    expect(await validate({ name: 'a', children: [{ name: 'B' }] })).toMatchObject({ ok: false, issues: [{ path: 'children.0.name' }] })
    expect(await validate({})).toMatchObject({ ok: false, issues: [{ message: expect.stringContaining('name') }] })
  })

  it('[H7.2] that takes too long fails alone, and the event loop goes on', async () => {
    // As a schema that was stored before the check had it.
    const slow = { type: 'string', pattern: '^(a+)+$' } as const
    markOutsideSchema(slow)
    const quick = { type: 'string', pattern: '^a+!?$' } as const
    markOutsideSchema(quick)
    let turns = 0
    const turning = setInterval(() => void turns++, 10)
    const late = compileSchema(slow, 'schema').validate(`${'a'.repeat(40)}!`)
    const next = compileSchema(quick, 'schema').validate('aaa!')
    await expect(late).rejects.toMatchObject({ code: 'invalid_schema', message: expect.stringContaining('took more than') })
    clearInterval(turning)
    expect(turns).toBeGreaterThan(20)
    expect(await next).toEqual({ ok: true, value: 'aaa!' })
  })
})
