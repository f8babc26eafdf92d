import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { Agent } from '../../src/index.ts'
import { PreparedStatements } from '../../src/store/sql/statements.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed } from '../thread/places.ts'
import { idle, isType, readUntil } from '../thread/said.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-alone-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a process that is alone on its file', () => {
  it('says hello, and nothing more', async () => {
    const path = join(folder, 'alone.db')
    const agent = new Agent({ id: 'guide', model: scriptedModel(['One.'], { loop: true }) })
    openHeed({ agent }, new LibSQLStore({ url: `file:${path}` }))
    for (let turn = 0; turn < 20; turn++) {
      const thread = { resourceId: 'user-1', threadId: `thread-${turn % 4}` }
      const watcher = await agent.subscribeToThread(thread)
      agent.sendMessage('Go.', thread)
      await readUntil(watcher.stream, isType('finish'))
      watcher.unsubscribe()
      await idle(agent, thread)
    }
    const queue = new DatabaseSync(join(`${path}-bus`, 'bus.db'), { readOnly: true, timeout: 60_000 })
    expect(queue.prepare('SELECT count(*) AS rows FROM messages').get()).toEqual({ rows: 1 })
    queue.close()
  })

  it('starts at no cost for the threads that are idle', async () => {
    const statements = async (threads: number) => {
      const store = new LibSQLStore({ url: `file:${join(folder, `idle-${threads}.db`)}` })
      await Promise.all(Array.from({ length: threads }, (_, index) => store.createThread({ id: `t${index}`, resourceId: 'r', now: index })))
      let count = 0
      const spies = (['run', 'one', 'all', 'insert'] as const).map((name) => {
        const actual = PreparedStatements.prototype[name] as (text: string, ...values: never[]) => never
        return vi.spyOn(PreparedStatements.prototype, name).mockImplementation(function (this: PreparedStatements, text: string, ...values: unknown[]) {
          count++
          return actual.call(this, text, ...(values as never[]))
        })
      })
      expect(await store.listOrphans(Date.now(), 100, ['guide'])).toEqual([])
      for (const spy of spies) spy.mockRestore()
      await store.close()
      return count
    }
    // The plans of these statements are held by the tests of the store: each is a search in an index of what is not idle.
    const few = await statements(10)
    expect(few).toBeLessThanOrEqual(4)
    expect(await statements(10_000)).toBe(few)
  })
})
