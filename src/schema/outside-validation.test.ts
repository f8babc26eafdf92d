import { describe, expect, it } from 'vitest'
import { OutsideValidation } from './outside-validation.ts'
import type { Validation } from './schema.ts'

/** A pattern that the check of schemas refuses: it takes longer than any deadline. */
const slow = { type: 'string', pattern: '^(a+)+$' } as const
const slowText = `${'a'.repeat(40)}!`
const quick = { type: 'string' } as const

/** Threads whose validations end when the test lets them, and the values of those that are in work. */
function heldThreads() {
  const inWork = new Map<unknown, () => void>()
  const validate = (_: unknown, value: unknown) => new Promise<Validation>((resolve) => {
    inWork.set(value, () => {
      inWork.delete(value)
      resolve({ ok: true, value })
    })
  })
  const values = () => [...inWork.keys()]
  const end = async (value: string) => {
    inWork.get(value)?.()
    await new Promise(setImmediate)
  }
  return { validation: new OutsideValidation([{ validate }, { validate }]), values, end }
}

describe('validations with schemas of several senders', () => {
  it('[H7.10] a slow one does not delay those of another sender, and its thread is replaced', async () => {
    const validation = new OutsideValidation()
    await Promise.all(['one', 'two'].map((sender) => validation.validate(sender, quick, 'x')))
    const order: string[] = []
    const late = validation.validate('slow', slow, slowText).catch(({ code }: { code: string }) => order.push(code))
    const after = validation.validate('slow', quick, 'x').then(({ ok }) => order.push(`slow ${ok}`))
    for (let count = 1; count <= 3; count++) order.push(`other ${(await validation.validate('other', quick, 'x')).ok}`)
    await Promise.all([late, after])
    expect(order).toEqual(['other true', 'other true', 'other true', 'invalid_schema', 'slow true'])
  })

  it('[H7.10] a sender has one in work, and senders take turns, however many one of them has waiting', async () => {
    const { validation, values, end } = heldThreads()
    const asked = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((value) => validation.validate(value[0] ?? '', quick, value))
    expect(values()).toEqual(['a1', 'b1'])
    await end('a1')
    expect(values()).toEqual(['b1', 'c1'])
    await end('c1')
    expect(values()).toEqual(['b1', 'a2'])
    await end('b1')
    expect(values()).toEqual(['a2', 'b2'])
    for (const value of ['b2', 'a2', 'a3', 'a4']) await end(value)
    expect(await Promise.all(asked)).toHaveLength(7)
  })

  it('[H7.10] too many of one sender are refused with a time to come back, and those of another are not', async () => {
    const { validation, values, end } = heldThreads()
    const many = Array.from({ length: 101 }, (_, index) => validation.validate('many', quick, `m${index}`))
    await expect(validation.validate('many', quick, 'x')).rejects.toMatchObject({ code: 'rate_limited', details: { retryAfterMs: 5_000 } })
    const other = validation.validate('other', quick, 'other')
    expect(values()).toEqual(['m0', 'other'])
    for (const value of ['other', ...many.map((_, index) => `m${index}`)]) await end(value)
    expect([await other, await Promise.all(many)]).toMatchObject([{ ok: true }, { length: 101 }])
  })
})
