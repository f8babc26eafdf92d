import { describe, expect, it } from 'vitest'
import { HeedError } from '../../base/errors.ts'
import { Writer, type Transactions } from './writer.ts'

/** Transactions over a list: what is rolled back is gone. */
class Journal implements Transactions {
  readonly stored: string[] = []
  readonly commits: string[][] = []
  refusals: unknown[] = []
  #open: string[] | undefined

  begin = (): void => {
    const refusal = this.refusals.shift()
    if (refusal !== undefined) throw refusal
    expect(this.#open).toBeUndefined()
    this.#open = []
  }

  commit = (): void => {
    this.stored.push(...(this.#open ?? []))
    this.commits.push(this.#open ?? [])
    this.#open = undefined
  }

  rollback = (): void => {
    this.#open = undefined
  }

  failure = (error: unknown): Error => error as Error

  add(name: string): string {
    this.#open?.push(name)
    return name
  }
}

const busy = Object.assign(new Error('database is locked'), { errcode: 5 })

describe('the group commit', () => {
  it('puts what is asked for in one turn into one transaction, in order, and answers each', async () => {
    const journal = new Journal()
    const writer = new Writer(journal, 1000)
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => writer.write(() => journal.add(name))))
    expect(answers).toEqual(['a', 'b', 'c'])
    expect(journal.commits).toEqual([['a', 'b', 'c']])
    await writer.write(() => journal.add('d'))
    expect(journal.commits).toHaveLength(2)
  })

  it('lets one go first, however many wait', async () => {
    const journal = new Journal()
    const writer = new Writer(journal, 1000)
    const waiting = Array.from({ length: 2_000 }, (_, index) => writer.write(() => journal.add(`${index}`)))
    const answers: string[] = []
    await Promise.all([...waiting, writer.write(() => journal.add('beat'), { first: true })].map((answer) => answer.then((name) => answers.push(name))))
    expect(journal.stored.slice(0, 3)).toEqual(['beat', '0', '1'])
    expect(journal.stored).toHaveLength(2_001)
    expect(answers).toHaveLength(2_001)
  })

  it('rolls back a job that throws, and no other job of its transaction', async () => {
    const journal = new Journal()
    const writer = new Writer(journal, 1000)
    const results = await Promise.allSettled([
      writer.write(() => journal.add('a')),
      writer.write(() => {
        journal.add('half')
        throw new HeedError('fenced', 'no')
      }),
      writer.write(() => journal.add('c')),
    ])
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(journal.stored).toEqual(['a', 'c'])
  })

  it('bounds a transaction, and keeps the order over many of them', async () => {
    const journal = new Journal()
    const writer = new Writer(journal, 1000)
    const names = Array.from({ length: 2000 }, (_, index) => `${index}`)
    await Promise.all(names.map((name) => writer.write(() => journal.add(name))))
    expect(journal.stored).toEqual(names)
    expect(Math.max(...journal.commits.map((commit) => commit.length))).toBeLessThanOrEqual(256)
  })

  it('waits while another holds the file, and lets the event loop go on', async () => {
    const journal = new Journal()
    journal.refusals = [busy, busy, busy]
    const writer = new Writer(journal, 10_000)
    const written = writer.write(() => journal.add('a'))
    const turns = await new Promise<number>((resolve) => {
      let count = 0
      const turn = () => (journal.refusals.length > 0 ? (count++, setImmediate(turn)) : resolve(count))
      turn()
    })
    expect(turns).toBeGreaterThan(3)
    expect(await written).toBe('a')
  })

  it('rejects all waiting writes after its time limit, and can write again', async () => {
    const journal = new Journal()
    journal.refusals = Array.from({ length: 100 }, () => busy)
    const writer = new Writer(journal, 5)
    const results = await Promise.allSettled([writer.write(() => journal.add('a')), writer.write(() => journal.add('b'))])
    expect(results.map((result) => result.status)).toEqual(['rejected', 'rejected'])
    journal.refusals = []
    expect(await writer.write(() => journal.add('c'))).toBe('c')
    expect(journal.stored).toEqual(['c'])
  })

  it('begins nothing while it is held', async () => {
    const journal = new Journal()
    const writer = new Writer(journal, 1000)
    const written = writer.write(() => journal.add('a'))
    const resume = writer.hold()
    const more = writer.write(() => journal.add('b'))
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(journal.stored).toEqual([])
    resume()
    await Promise.all([written, more])
    expect(journal.commits).toEqual([['a', 'b']])
  })

  it('finishes what it took before it closes, and takes nothing after', async () => {
    const journal = new Journal()
    const writer = new Writer(journal, 1000)
    const written = writer.write(() => journal.add('a'))
    await writer.close()
    expect(journal.stored).toEqual(['a'])
    expect(await written).toBe('a')
    await expect(writer.write(() => journal.add('b'))).rejects.toMatchObject({ code: 'closed' })
  })
})
