import { describe, expect, it } from 'vitest'
import { SerialQueue } from './serial-queue.ts'

describe('a serial queue', () => {
  it('runs a task synchronously when the queue is empty', () => {
    const queue = new SerialQueue()
    expect(queue.run(() => 1)).toBe(1)
    expect(queue.run(() => 2)).toBe(2)
  })

  it('keeps the order of the calls, however long each task takes', async () => {
    const queue = new SerialQueue()
    const done: string[] = []
    const slow = Promise.withResolvers<void>()
    const first = queue.run(async () => {
      await slow.promise
      done.push('first')
    })
    const second = queue.run(() => void done.push('second'))
    const third = queue.run(async () => void done.push('third'))
    expect(done).toEqual([])
    slow.resolve()
    await Promise.all([first, second, third])
    expect(done).toEqual(['first', 'second', 'third'])
    expect(queue.run(() => 'synchronous again')).toBe('synchronous again')
  })

  it('runs a task that a task adds after it', async () => {
    const queue = new SerialQueue()
    const done: string[] = []
    let inner: unknown
    const outer = queue.run(() => {
      inner = queue.run(() => void done.push('inner'))
      done.push('outer')
    })
    expect(outer).toBeUndefined()
    expect(done).toEqual(['outer'])
    const slow = queue.run(async () => {
      inner = queue.run(() => void done.push('inner of slow'))
      await Promise.resolve()
      done.push('slow')
    })
    await slow
    await inner
    expect(done).toEqual(['outer', 'inner', 'slow', 'inner of slow'])
  })

  it('rejects with the error of a task, and continues', async () => {
    const queue = new SerialQueue()
    const thrown = queue.run((): number => {
      throw new Error('no')
    })
    expect(thrown).toBeInstanceOf(Promise)
    await expect(thrown).rejects.toThrow('no')
    await expect(queue.run(() => Promise.reject(new Error('later')))).rejects.toThrow('later')
    expect(await queue.run(() => 3)).toBe(3)
  })
})
