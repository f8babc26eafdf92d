import { describe, expect, it } from 'vitest'
import { newId } from './ids.ts'

describe('ids', () => {
  it('are UUIDs of version 7, each made once, one after another', () => {
    const ids = Array.from({ length: 20_000 }, newId)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toEqual(ids.toSorted())
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })
})
