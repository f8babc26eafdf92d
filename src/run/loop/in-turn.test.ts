import { describe, expect, it } from 'vitest'
import { InTurn } from './in-turn.ts'

describe('work in turn', () => {
  it('does at once what needs no waiting', () => {
    const turns = new InTurn()
    expect(turns.do(() => 1)).toBe(1)
    expect(turns.do(() => 2)).toBe(2)
  })

  it('keeps the order in which work came, however long each takes', async () => {
    const turns = new InTurn()
    const done: string[] = []
    const slow = Promise.withResolvers<void>()
    const first = turns.do(async () => {
      await slow.promise
      done.push('first')
    })
    const second = turns.do(() => void done.push('second'))
    const third = turns.do(async () => void done.push('third'))
    expect(done).toEqual([])
    slow.resolve()
    await Promise.all([first, second, third])
    expect(done).toEqual(['first', 'second', 'third'])
    expect(turns.do(() => 'at once again')).toBe('at once again')
  })

  it('does after the work what the work asks for', async () => {
    const turns = new InTurn()
    const done: string[] = []
    let inner: unknown
    const outer = turns.do(() => {
      inner = turns.do(() => void done.push('inner'))
      done.push('outer')
    })
    expect(outer).toBeUndefined()
    expect(done).toEqual(['outer'])
    const slow = turns.do(async () => {
      inner = turns.do(() => void done.push('inner of slow'))
      await Promise.resolve()
      done.push('slow')
    })
    await slow
    await inner
    expect(done).toEqual(['outer', 'inner', 'slow', 'inner of slow'])
  })

  it('rejects with what work throws, and goes on', async () => {
    const turns = new InTurn()
    const thrown = turns.do((): number => {
      throw new Error('no')
    })
    expect(thrown).toBeInstanceOf(Promise)
    await expect(thrown).rejects.toThrow('no')
    await expect(turns.do(() => Promise.reject(new Error('later')))).rejects.toThrow('later')
    expect(await turns.do(() => 3)).toBe(3)
  })
})
