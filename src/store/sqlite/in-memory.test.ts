import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import type { Message } from '../../message/message.ts'
import { acceptOne, persisted, rejectsWith, rowIds, send } from '../conformance/fixture.ts'
import { namespaceOf, storageKey } from '../contract/storage.ts'
import { InMemoryStore } from './in-memory.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-in-memory-'))
afterAll(() => rmSync(folder, { recursive: true }))

function said(at: number): Message {
  return { id: `m${at}`, role: 'user', createdAt: new Date(at), content: { format: 2, parts: [{ type: 'text', text: at === 0 ? 'The key is under the flowerpot.' : `Remark ${at}.` }] } }
}

describe('InMemoryStore', () => {
  it('is a database of its own: two of them are two places, two namespaces and share nothing', async () => {
    const [one, other] = [new InMemoryStore(), new InMemoryStore()]
    await acceptOne(one, send('a', persisted))
    await acceptOne(other, send('b', persisted))
    expect([await rowIds(one), await rowIds(other)]).toEqual([['a'], ['b']])
    expect(storageKey(one)).not.toBe(storageKey(other))
    expect(namespaceOf(one)).not.toBe(namespaceOf(other))
    await one.close()
    await rejectsWith('closed', one.open())
    await rejectsWith('closed', rowIds(one))
    expect(await rowIds(other)).toEqual(['b'])
    await other.close()
  })

  it('starts empty, whatever is in those that were opened before it: the first of a process, the one that is copied, and copies', async () => {
    const stores: InMemoryStore[] = []
    for (const id of ['a', 'b', 'c', 'd']) {
      const store = new InMemoryStore()
      stores.push(store)
      await acceptOne(store, send(id, persisted))
    }
    expect(await Promise.all(stores.map((store) => rowIds(store)))).toEqual([['a'], ['b'], ['c'], ['d']])
    await Promise.all(stores.map((store) => store.close()))
  })

  it('finds every message, also the first of thousands, and the event loop runs meanwhile', async () => {
    const store = new InMemoryStore()
    await store.createThread({ id: 't', resourceId: 'r', now: 1 })
    await store.saveMessages([{ scope: { threadId: 't', resourceId: 'r' }, messages: Array.from({ length: 3_000 }, (_, at) => said(at)) }])
    const recall = await store.getStore('recall')
    // The first search makes the index: 30 steps and more.
    let turns = 0
    let searching = true
    const count = (): void => {
      turns += 1
      if (searching) setImmediate(count)
    }
    setImmediate(count)
    await expect.poll(async () => (await recall?.status())?.rebuilding).toBeUndefined()
    const found = await recall?.search({ resourceId: 'r', text: 'flowerpot', limit: 1 })
    searching = false
    expect(found?.map(({ messageId }) => messageId)).toEqual(['m0'])
    expect(turns).toBeGreaterThan(25)
    await store.close()
  })

  it('opens no file, starts no worker and lets the process end without close(), also after recall', async () => {
    const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
    const text = `
      import { InMemoryStore } from ${module('./in-memory.ts')}
      import { acceptOne, persisted, send } from ${module('../conformance/fixture.ts')}
      let workers = 0
      process.on('worker', () => { workers += 1 })
      const store = new InMemoryStore()
      await acceptOne(store, send('a', persisted))
      await store.flush()
      const recall = await store.getStore('recall')
      const found = await recall.search({ resourceId: 'resource-1', text: 'a', limit: 1 })
      for (const domain of ['notifications', 'schedules', 'subscriptions']) await (await store.getStore(domain)).open()
      process.on('exit', () => console.log(JSON.stringify({ workers })))`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', text], { cwd: folder })
    expect(JSON.parse(stdout)).toEqual({ workers: 0 })
    expect(readdirSync(folder)).toEqual([])
  })
})
