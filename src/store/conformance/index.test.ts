import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { copyEmptyFile } from '../../../test/store/empty-database.ts'
import { storeConformance, type StoreHarness } from './index.ts'
import type { ThreadStore } from '../contract/threads.ts'
import { LibSQLStore } from '../sqlite/store.ts'
import { InMemoryStore } from '../sqlite/in-memory.ts'

const opened: ThreadStore[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

async function kept<Store extends ThreadStore>(store: Store): Promise<Store> {
  opened.push(store)
  await store.open()
  return store
}

const memory: StoreHarness = { store: () => kept(new InMemoryStore()) }

const folder = mkdtempSync(join(tmpdir(), 'heed-store-'))
afterAll(() => rmSync(folder, { recursive: true }))
const files = new WeakMap<ThreadStore, string>()
let count = 0

async function libsql(url: string): Promise<ThreadStore> {
  const store = await kept(new LibSQLStore({ url }))
  files.set(store, url)
  return store
}
const file: StoreHarness = {
  store: () => libsql(`file:${copyEmptyFile(join(folder, `${count++}.db`))}`),
  async reopen(store) {
    await store.close()
    return libsql(files.get(store) ?? '')
  },
}

describe('every store', () => {
  it.each(storeConformance)('in memory: $name', ({ run }) => expect(run(memory)).resolves.toBeUndefined())
  it.each(storeConformance)('libSQL file: $name', ({ run }) => expect(run(file)).resolves.toBeUndefined())

  it('names each case once', () => {
    const names = storeConformance.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })
})
