import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { recallSuite, say } from '../../../test/recall/conformance/suite.ts'
import type { RecallIndex } from '../../store/contract/recall.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-recall-'))
afterAll(() => rmSync(folder, { recursive: true }))
const open: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((store) => store.close()))
})

let files = 0
const newFile = () => `file:${join(folder, `${files++}.db`)}`

async function storeAt(url: string): Promise<{ store: LibSQLStore; recall: RecallIndex }> {
  const store = new LibSQLStore({ url })
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

function placeAt(url: string) {
  return {
    outlivesStores: url !== ':memory:',
    open() {
      const store = new LibSQLStore({ url })
      open.push(store)
      return store
    },
  }
}

recallSuite('in a file', () => placeAt(newFile()))
recallSuite('in memory', () => placeAt(':memory:'))

describe('recall beside a file', () => {
  it('[K1.10] creates the index again when the backup is older than the first use of recall', async () => {
    const url = newFile()
    const { store, recall } = await storeAt(url)
    const [kept] = await say(store, 't', 'r', 'The walrus sings.')
    const backup = join(folder, `backup-${files++}.db`)
    await store.backup(backup)
    await say(store, 't2', 'r', 'The carpenter dances.')
    const found = async (text: string) =>
      (await recall.search({ resourceId: 'r', text, limit: 1 })).map(({ messageId, reasons }) => ({ messageId, words: reasons.words }))
    expect(await found('carpenter')).toMatchObject([{ words: 1 }])
    await store.restore(backup)
    expect(await found('carpenter')).toEqual([])
    expect(await found('walrus')).toEqual([{ messageId: kept, words: 1 }])
    const [late] = await say(store, 't3', 'r', 'The unicorn sleeps.')
    expect(await found('unicorn')).toMatchObject([{ messageId: late }])
    expect(await found('carpenter')).toEqual([])
  })

  it('[K1.10] creates the index again when it is missing or the messages were restored', async () => {
    const url = newFile()
    const { store, recall } = await storeAt(url)
    const [kept] = await say(store, 't', 'r', 'The walrus sings.')
    await recall.search({ resourceId: 'r', text: 'walrus', limit: 1 })
    const backup = join(folder, `backup-${files++}.db`)
    await store.backup(backup)
    await say(store, 't', 'r', 'The carpenter dances.')
    expect(await recall.search({ resourceId: 'r', text: 'carpenter', limit: 1 })).toHaveLength(1)
    await store.restore(backup)
    expect(
      (await recall.search({ resourceId: 'r', text: 'carpenter', limit: 1 })).filter(({ text }) => text.includes('carpenter')),
    ).toEqual([])
    await store.close()
    for (const suffix of ['-recall', '-recall-wal', '-recall-shm']) rmSync(`${url.slice(5)}${suffix}`, { force: true })
    const again = await storeAt(url)
    expect(await again.recall.search({ resourceId: 'r', text: 'walrus', limit: 1 })).toMatchObject([{ messageId: kept }])
  })
})
