import { DatabaseSync } from 'node:sqlite'
import { array, assert, asyncProperty, constantFrom, integer, record } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../base/clock.ts'
import type { SqlStatement } from './known-answers.ts'
import { SpeculationFailed, replay } from './replay.ts'
import { PreparedStatements } from '../statements.ts'

/** A table of numbers, and what a server would do with statements on it. */
function numbers() {
  const database = new DatabaseSync(':memory:')
  database.exec('CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER UNIQUE); INSERT INTO numbers (n) VALUES (1), (2), (3)')
  const sent: string[][] = []
  return {
    database,
    sent,
    async execute({ statements }: { statements: readonly SqlStatement[] }) {
      sent.push(statements.map(({ sql }) => sql))
      const answers = statements.map(({ sql, args }) => {
        const statement = database.prepare(sql)
        if (statement.columns().length > 0) return { rows: statement.all(...args), changes: 0, lastInsertRowid: 0 }
        const { changes, lastInsertRowid } = statement.run(...args)
        return { rows: [], changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) }
      })
      return { answers }
    },
    rows: () => database.prepare('SELECT id, n FROM numbers ORDER BY id').all().map((row) => ({ ...row })),
  }
}

const read = 'SELECT n FROM numbers WHERE id = ?'
const change = 'UPDATE numbers SET n = ? WHERE id = ?'
const add = 'INSERT INTO numbers (n) VALUES (?) ON CONFLICT DO NOTHING'
const remove = 'DELETE FROM numbers WHERE n > ?'

describe('a transaction that is done again with answers', () => {
  it('sends together what it needs no answer of', async () => {
    const { execute, sent, rows } = numbers()
    await replay(execute, systemClock, (_, statements) => {
      for (const id of [7, 8, 9]) statements.one(read, id)
      for (const id of [1, 2, 3]) statements.run(change, id * 10, id)
    })
    expect(sent.map(({ length }) => length)).toEqual([3, 3])
    expect(rows().map(({ n }) => n)).toEqual([10, 20, 30])
  })

  it('never writes on what was only guessed to be read', async () => {
    const { execute, sent, rows } = numbers()
    const { result } = await replay(execute, systemClock, (_, statements) => {
      const there = statements.one<{ n: number }>(read, 1)
      return there ? there.n : statements.insert(add, 50)
    })
    expect([result, sent, rows().length]).toEqual([1, [[read]], 3])
  })

  it('goes on writing after a question that had the same answer each time, and asks nothing twice that is still true', async () => {
    const { execute, sent } = numbers()
    await replay(execute, systemClock, (_, statements) => {
      for (let id = 10; id < 30; id += 1) {
        statements.one(read, id)
        statements.run(add, id)
      }
    })
    expect(sent.length).toBeLessThan(6)
    const list = numbers()
    const { result } = await replay(list.execute, systemClock, (_, statements) => [1, 2, 3].map((id) => statements.one<{ n: number }>(read, id)?.n ?? statements.one(read, id + 100)))
    expect([result, list.sent.length]).toEqual([[1, 2, 3], 1])
  })

  it('says so when writes went out after a wrong guess that mattered, and not when it didn\'t', async () => {
    const mattered = numbers()
    await expect(replay(mattered.execute, systemClock, (_, statements) => {
      if (statements.run(change, 5, 99) === 1) statements.run(change, 6, 1)
      else statements.run(change, 7, 2)
    })).rejects.toBeInstanceOf(SpeculationFailed)
    const idle = numbers()
    const { result } = await replay(idle.execute, systemClock, (_, statements) => {
      const changes = statements.run(change, 5, 99)
      statements.run(change, 6, 1)
      return changes
    })
    expect([result, idle.rows()[0]?.n, idle.sent.length]).toEqual([0, 6, 1])
  })

  it('ends loops that end with the true answer alone', async () => {
    const { execute, rows } = numbers()
    await replay(execute, systemClock, (_, statements) => {
      while (statements.run('DELETE FROM numbers WHERE id = (SELECT min(id) FROM numbers)') > 0) { /* one more */ }
    }).catch((error: unknown) => expect(error).toBeInstanceOf(SpeculationFailed))
    expect(rows()).toEqual([])
  })

  it('has the result of the same transaction on a local database, for any statements', async () => {
    const id = integer({ min: 1, max: 6 })
    const step = record({ act: constantFrom('read', 'change', 'add', 'insert', 'remove', 'refuse'), id, n: id, onlyIf: constantFrom('always', 'before', 'not before') })
    await assert(asyncProperty(array(step, { maxLength: 30 }), async (steps) => {
      const work = (statements: Pick<PreparedStatements, 'run' | 'one' | 'insert'>) => {
        let before = 0
        const all: number[] = []
        for (const { act, id: at, n, onlyIf } of steps) {
          if (onlyIf !== 'always' && (onlyIf === 'before') !== before > 0) continue
          if (act === 'read') before = statements.one<{ n: number }>(read, at)?.n ?? 0
          else if (act === 'change') before = statements.run('UPDATE OR IGNORE numbers SET n = ? WHERE id = ?', n, at)
          else if (act === 'add') before = statements.run(add, n)
          else if (act === 'insert') before = statements.insert('INSERT OR REPLACE INTO numbers (n) VALUES (?)', n)
          else if (act === 'remove') before = statements.run(remove, n)
          else if (before > 3) throw new Error(`refused at ${before}`)
          all.push(before)
        }
        return all
      }
      const near = numbers()
      const expected = attempt(() => work(new PreparedStatements(near.database)))
      let far = numbers()
      let got: unknown = new SpeculationFailed()
      for (const venture of ['much', 'little', 'nothing'] as const) {
        if (!(got instanceof SpeculationFailed)) break
        far = numbers()
        got = await replay(far.execute, systemClock, (_, statements) => work(statements), { level: venture }).then(({ result }) => result, (error: unknown) => error)
      }
      expect(got).toEqual(expected)
      expect(far.rows()).toEqual(near.rows())
    }), { numRuns: 1_000, seed: 11 })
  })
})

function attempt(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}
