import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import { notificationConformance, scheduleConformance, storeConformance, type StoreHarness } from '../../src/testing/index.ts'
import { copyEmptyOfClient } from './empty-database.ts'
import { fileClient } from './file-client.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-client-'))
afterAll(() => rmSync(folder, { recursive: true }))
const opened: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
})

let count = 0
const prepared = () => ready(`file:${copyEmptyOfClient(join(folder, `${count++}.db`))}`)

/** What a server would be asked is asked of a file here, through the same client. */
async function ready(url: string): Promise<LibSQLStore> {
  const store = new LibSQLStore({ url, client: fileClient(url) })
  opened.push(store)
  await store.open()
  return store
}

const inboxOf = async (store: LibSQLStore) => (await store.getStore('notifications'))!
const schedulesOf = async (store: LibSQLStore) => (await store.getStore('schedules'))!

const harness: StoreHarness = {
  store: prepared,
  async reopen(store) {
    await store.close()
    return ready((store as LibSQLStore).url)
  },
}

describe('a database that is reached through a client', () => {
  it.each(storeConformance)('$name', ({ run }) => expect(run(harness)).resolves.toBeUndefined())

  it.each(notificationConformance)('the inbox: $name', ({ run }) => expect(run({ store: async () => inboxOf(await prepared()) })).resolves.toBeUndefined())

  it.each(scheduleConformance)('schedules: $name', ({ run }) => expect(run({ store: async () => schedulesOf(await prepared()) })).resolves.toBeUndefined())
})
