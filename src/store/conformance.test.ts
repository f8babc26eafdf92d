import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { storeConformance, type StoreHarness } from './conformance.ts'
import type { ThreadStore } from './contract.ts'
import { LibSQLStore } from './libsql/store.ts'
import { InMemoryStore } from './memory/store.ts'

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
  store: () => libsql(`file:${join(folder, `${count++}.db`)}`),
  async reopen(store) {
    await store.close()
    return libsql(files.get(store) ?? '')
  },
}
const fileless: StoreHarness = { store: () => kept(new LibSQLStore({ url: ':memory:' })) }

describe('[A2.1] [A3.2] [R1.1] [R1.2] [R2.1] [R3.1] [R4.1] [R5.1] [R6.1] [R7.1] [R8.1] [X1.1] [X1.2] [L1.1] [D1.1] every store', () => {
  it.each(storeConformance)('in memory: $name', ({ run }) => expect(run(memory)).resolves.toBeUndefined())
  it.each(storeConformance)('libSQL file: $name', ({ run }) => expect(run(file)).resolves.toBeUndefined())
  it.each(storeConformance)('libSQL in memory: $name', ({ run }) => expect(run(fileless)).resolves.toBeUndefined())

  it('has a case for each of these promises, and names each case once', () => {
    const names = storeConformance.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    const cited = new Set(names.flatMap((name) => name.match(/\[[A-Z]\d+\.\d+\]/g) ?? []))
    expect([...cited].toSorted()).toEqual(expect.getState().currentTestName?.match(/\[[A-Z]\d+\.\d+\]/g)?.toSorted())
  })
})
