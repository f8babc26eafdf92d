import { expect, it } from 'vitest'
import { partialJSON } from './structured-output.ts'

const whole = { name: 'Ann "A" \\ é\n', ages: [1, -2.5e3, null, true], deep: { list: [[], [{}], 'x'] }, last: false }

it.each([undefined, 2])('parses every prefix of a text, and never drops a property that an earlier prefix had (indent %s)', (indent) => {
  const text = JSON.stringify(whole, null, indent)
  expect(partialJSON(text)).toEqual(whole)
  let names = 0
  for (let end = 1; end <= text.length; end++) {
    const partial = partialJSON(text.slice(0, end)) as Partial<typeof whole>
    expect(Object.keys(partial).length).toBeGreaterThanOrEqual(names)
    names = Object.keys(partial).length
    if (partial.name !== undefined) expect(whole.name.startsWith(partial.name)).toBe(true)
    expect(whole.ages.slice(0, partial.ages?.length ?? 0)).toEqual(partial.ages ?? [])
  }
})

it.each([
  ['```json\n{"a": 1', {}],
  ['{"a": 1,', { a: 1 }],
  ['{"a": tr', {}],
  ['["\\ud83d', ['']],
  ['["a\\', ['a']],
  ['["a\\\\', ['a\\']],
  ['Sure', undefined],
  ['{"a" 1}', undefined],
  ['[what]', undefined],
  ['['.repeat(100_000), undefined],
])('parses %j as %j', (text, value) => {
  if (text.includes('ud83d')) expect(partialJSON(text)).toHaveLength(1)
  else expect(partialJSON(text.slice(0, 300_000))).toEqual(value)
})

it('treats __proto__ as a plain property', () => {
  const value = partialJSON('{"__proto__": {"x": 1}, "y": 2}')
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  expect(JSON.stringify(value)).toBe('{"__proto__":{"x":1},"y":2}')
})
