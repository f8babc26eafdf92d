import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { textOf } from '../../message/content.ts'
import { acceptOne, commit, finish, persisted, row, scope, send, start, threadId, type Begun } from '../conformance/fixture.ts'
import type { RowRecord } from '../core/records.ts'
import { RecentRows } from './recent.ts'
import { sql } from './sql.ts'
import { PreparedStatements } from './statements.ts'
import { LibSQLStore } from '../sqlite/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-recent-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('what a run reads again', () => {
  let path: string
  let store: LibSQLStore
  let count = 0
  beforeEach(() => {
    path = join(folder, `${count++}.db`)
    store = new LibSQLStore({ url: `file:${path}` })
    return () => store.close()
  })

  const texts = ({ rows }: Begun) => rows.map(textOf)
  const turn = async (id: string) => {
    const begun = await start(store, id)
    await commit(store, begun, { rows: [row(`answer-${id}`, 'assistant')], ...finish })
    return begun
  }
  /** Another process, as far as SQLite can tell. */
  const elsewhere = (text: string) => {
    const database = new DatabaseSync(path, { timeout: 60_000 })
    database.exec(text)
    database.close()
  }

  it('is not read from the database as long as nothing else happened', async () => {
    await turn('a')
    await turn('b')
    const read = vi.spyOn(PreparedStatements.prototype, 'all')
    const begun = await start(store, 'c')
    const asked = read.mock.calls.filter(([text]) => text === sql.rowsFrom)
    read.mockRestore()
    expect(asked).toEqual([])
    expect(texts(begun)).toEqual(['a', 'answer-a', 'b', 'answer-b', 'c'])
    expect((await store.listRows(scope, { limit: 10 })).rows).toEqual(begun.rows)
  })

  it('has what another process wrote', async () => {
    await turn('a')
    elsewhere(`UPDATE heed_messages SET content = replace(content, 'answer-a', 'other words') WHERE id = 'answer-a'`)
    expect(texts(await start(store, 'b'))).toEqual(['a', 'other words', 'b'])
  })

  it('has what was revised, removed, or stored behind a run', async () => {
    await turn('a')
    await store.saveRows(scope, [row('answer-a', 'assistant', 'revised')])
    expect(texts(await turn('b'))).toEqual(['a', 'revised', 'b'])
    await store.deleteMessages(scope, ['b'])
    const active = await start(store, 'c')
    expect(texts(active)).toEqual(['a', 'revised', 'answer-b', 'c'])
    await acceptOne(store, send('note', persisted))
    await commit(store, active, { rows: [row('answer-c', 'assistant')], ...finish })
    expect(texts(await start(store, 'd'))).toEqual(['a', 'revised', 'answer-b', 'c', 'answer-c', 'note', 'd'])
  })

  it('has nothing of a transaction that was undone', async () => {
    await turn('a')
    const begun = await start(store, 'b')
    const actual = PreparedStatements.prototype.run
    vi.spyOn(PreparedStatements.prototype, 'run').mockImplementation(function (this: PreparedStatements, text, ...values) {
      if (text === 'COMMIT') throw new Error('the disk is full')
      return actual.call(this, text, ...values)
    })
    await expect(commit(store, begun, { rows: [row('lost', 'assistant')], ...finish })).rejects.toThrow('the disk is full')
    vi.restoreAllMocks()
    await commit(store, begun, { rows: [row('kept', 'assistant')], ...finish })
    expect(texts(await start(store, 'c'))).toEqual(['a', 'answer-a', 'b', 'kept', 'c'])
  })

  it('is not of a thread that was deleted and came again', async () => {
    await turn('a')
    await store.deleteThread({ threadId })
    expect(texts(await start(store, 'b'))).toEqual(['b'])
  })
})

describe('RecentRows', () => {
  const record = (seq: number, text = 'x'): RowRecord => ({
    seq, id: `m${seq}`, messageId: `m${seq}`, role: 'user', type: null, runId: null, step: null, content: text, createdAt: 0, ordinal: seq, turn: seq, counted: 1,
  })

  it('keeps a bounded number of threads and of text', () => {
    const recent = new RecentRows()
    for (let thread = 0; thread < 1000; thread++) recent.keep(thread, 0, [record(1)])
    expect([recent.rowsFrom(0, 0), recent.rowsFrom(999, 0)]).toEqual([undefined, [record(1)]])
    for (let thread = 0; thread < 100; thread++) recent.keep(thread, 0, [record(1, 'x'.repeat(90_000))])
    expect(recent.rowsFrom(80, 0)).toBeUndefined()
    expect(recent.rowsFrom(99, 0)).toHaveLength(1)
    recent.keep(5, 0, [record(1, 'x'.repeat(200_000))])
    expect(recent.rowsFrom(5, 0)).toBeUndefined()
  })

  it('answers only what it has whole', () => {
    const recent = new RecentRows()
    recent.keep(1, 5, [record(5), record(6)])
    recent.appended(1, record(9))
    expect(recent.rowsFrom(1, 4)).toBeUndefined()
    expect(recent.rowsFrom(1, 6)?.map(({ seq }) => seq)).toEqual([6, 9])
    expect(recent.countedFrom(1, 4)).toBeUndefined()
    expect(recent.countedFrom(1, 7)?.ordinal).toBe(9)
    expect(recent.countedBack(1, 8, 2)?.ordinal).toBe(5)
    expect(recent.countedBack(1, 8, 3)).toBeUndefined()
  })
})
