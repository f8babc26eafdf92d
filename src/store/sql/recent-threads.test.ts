import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { ThreadRecord } from '../core/records.ts'
import { RecentThreads } from './recent.ts'
import { sql } from './sql.ts'
import { PreparedStatements } from './statements.ts'
import { LibSQLStore } from '../sqlite/store.ts'

const scope = { threadId: 'thread', resourceId: 'resource' }

describe('a thread that was just written', () => {
  let folder: string
  let path: string
  let store: LibSQLStore

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-'))
    path = join(folder, 'threads.db')
    store = new LibSQLStore({ url: `file:${path}` })
    await store.createThread({ id: scope.threadId, resourceId: scope.resourceId, now: 1 })
    await touch()
  })

  afterEach(async () => {
    vi.restoreAllMocks()
    await store.close()
    rmSync(folder, { recursive: true })
  })

  let touched = 0
  const touch = () => store.patchThread(scope, { metadata: { touched: ++touched } })

  it('is not read again', async () => {
    const read = vi.spyOn(PreparedStatements.prototype, 'one')
    await touch()
    expect(read.mock.calls.filter(([text]) => text === sql.thread)).toEqual([])
  })

  it('is read again when another connection wrote', async () => {
    const other = new DatabaseSync(path, { timeout: 60_000 })
    other.exec(`UPDATE heed_threads SET title = 'theirs'`)
    other.close()
    expect(await touch()).toMatchObject({ title: 'theirs', metadata: { touched } })
  })

  it('is read again when a statement of its own connection changed threads, also in one transaction with others', async () => {
    const connection = await store.connection()
    await Promise.all([connection.write((_, statements) => statements.run(`UPDATE heed_threads SET title = 'ours'`)), store.patchThread(scope, { metadata: {} })])
    await connection.write((_, statements) => statements.run(`UPDATE heed_threads SET title = 'last'`))
    expect(await touch()).toMatchObject({ title: 'last' })
  })

  it('is as it was when the transaction is undone', async () => {
    const connection = await store.connection()
    const failed = connection.write((tables) => {
      const thread = tables.thread(scope.threadId)
      if (thread) thread.title = 'never'
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await touch()).toMatchObject({ title: '' })
  })

  it('may be changed by those who read it and not be written: the next one sees what is stored', async () => {
    const connection = await store.connection()
    await connection.write((tables) => {
      const thread = tables.thread(scope.threadId)
      if (thread) thread.title = 'not put'
    })
    expect(await touch()).toMatchObject({ title: '' })
  })

  it('is forgotten when it was deleted', async () => {
    await store.deleteThread(scope)
    expect(await store.getThread(scope)).toBeNull()
    await expect(touch()).rejects.toMatchObject({ code: 'thread_not_found' })
  })
})

describe('recent threads', () => {
  it('are few, and those that say little of themselves', () => {
    const recent = new RecentThreads()
    const thread = (id: string, metadata = '{}') => ({ id, title: '', metadata }) as ThreadRecord
    for (let index = 0; index < 1_000; index += 1) recent.keep(thread(String(index)), undefined)
    recent.keep(thread('large', 'x'.repeat(10_000)), undefined)
    expect(Array.from({ length: 1_000 }, (_, index) => String(index)).filter((id) => recent.has(id))).toHaveLength(256)
    expect([recent.has('999'), recent.has('0'), recent.has('large')]).toEqual([true, false, false])
    expect([recent.take('999')?.thread.id, recent.has('999')]).toEqual(['999', false])
  })
})
