import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { Message } from '../../message/message.ts'
import { maxPassages } from '../text/passages.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'
import { openDatabases, type Databases } from './databases.ts'
import { RecallEngine } from './engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-gone-'))
afterAll(() => rmSync(folder, { recursive: true }))
const open: Array<{ close(): unknown }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

let files = 0
const count = 200
const id = (at: number) => `m${at}`
const embedder = 'test/two'

/** A store with messages, of which no driver indexes anything: the engine beside it does what it is asked. */
async function engineBeside(): Promise<{ store: LibSQLStore; engine: RecallEngine; databases: Databases }> {
  const path = join(folder, `${files++}.db`)
  const first = new LibSQLStore({ url: `file:${path}` })
  await first.createThread({ id: 't', resourceId: 'r', now: 1 })
  const messages = Array.from({ length: count }, (_, at): Message => ({
    id: id(at),
    role: 'user',
    createdAt: new Date(at),
    content: { format: 2, parts: [{ type: 'text', text: `Our hound number${at} barked.` }] },
  }))
  await first.saveMessages([{ scope: { threadId: 't', resourceId: 'r' }, messages }])
  await (await first.getStore('recall'))?.status()
  await first.close()
  const store = new LibSQLStore({ url: `file:${path}` })
  const databases = openDatabases(path)
  const engine = new RecallEngine(databases)
  open.push(store, engine)
  indexAll(engine)
  engine.register(embedder, 0)
  return { store, engine, databases }
}

function indexAll(engine: RecallEngine): void {
  while (engine.index().more) { /* more */ }
}

/** Has vectors made of whatever is given out, as long as anything is. */
function embedAll(engine: RecallEngine, limit: number): void {
  const made = { hash: 'of-all', vector: Float32Array.of(1, 0.5) }
  for (let calls = 0; calls < 2 * count; calls += 1) {
    const { passages, outdated } = engine.readDue(embedder, limit, 1)
    if (passages.length === 0 && outdated.length === 0) return
    engine.storeVectors(embedder, passages.map(({ passage, revision }) => ({ passage, revision, ...made })))
  }
  throw new Error('there is no end to it')
}

/** Messages that the index has anything of and that aren't there, and those that it lacks. */
function differences({ index, messages }: Databases) {
  const keys = new Set(messages.all<{ key: number }>('SELECT key FROM heed_messages').map(({ key }) => key))
  const differing = (table: string, column: string) => {
    const here = new Set(
      index.all<{ key: number }>(`SELECT ${column} AS key FROM ${table}`).map(({ key }) => Math.floor(key / maxPassages)),
    )
    return { gone: [...here].filter((key) => !keys.has(key)).length, missing: [...keys].filter((key) => !here.has(key)).length }
  }
  return { passages: differing('passages', 'key'), vectors: differing('vectors', 'passage'), words: differing('words', 'rowid') }
}

const none = { gone: 0, missing: 0 }
const same = { passages: none, vectors: none, words: none }

describe('deleted messages', () => {
  it('[K1.12] leave nothing in the index when a rebuild precedes the indexing of their deletion', async () => {
    const { store, engine, databases } = await engineBeside()
    embedAll(engine, 8)
    await store.deleteMessages({ threadId: 't' }, Array.from({ length: count / 2 }, (_, at) => id(2 * at + 1)))
    engine.rebuild()
    indexAll(engine)
    embedAll(engine, 8)
    expect(differences(databases)).toEqual(same)
    expect(engine.status()).toMatchObject({ pending: 0, embedders: [{ complete: true, pending: 0, embedded: count / 2 }] })
  })

  it.each(['the oldest', 'the newest'])('[K1.12] are removed by a rebuild also without a change record: %s', async (which) => {
    const { store, engine, databases } = await engineBeside()
    embedAll(engine, 8)
    const from = which === 'the oldest' ? 0 : count / 2
    await store.deleteMessages({ threadId: 't' }, Array.from({ length: count / 2 }, (_, at) => id(from + at)))
    // As if the changes had been read and nothing been done about them.
    databases.index.run('UPDATE progress SET number = 1000000')
    expect(differences(databases).passages).toEqual({ gone: count / 2, missing: 0 })
    engine.rebuild()
    indexAll(engine)
    embedAll(engine, 8)
    expect(differences(databases)).toEqual(same)
  })

  it.each([true, false])('[K1.12] don\'t block the vectors of others, with or without a change record (%s)', async (recorded) => {
    const { store, engine, databases } = await engineBeside()
    await store.deleteMessages({ threadId: 't' }, Array.from({ length: count / 2 }, (_, at) => id(at)))
    if (!recorded) databases.index.run('UPDATE progress SET number = 1000000')
    embedAll(engine, 4)
    expect(differences(databases)).toEqual(same)
    expect(engine.embedderState(embedder)).toEqual({ complete: true, dimension: 2 })
  })

  it('[K1.12] don\'t block completion when the last queued message is deleted', async () => {
    const { store, engine } = await engineBeside()
    const { passages: [first] } = engine.readDue(embedder, 1, 1)
    if (first) engine.storeVectors(embedder, [{ ...first, hash: 'of-all', vector: Float32Array.of(1, 0.5) }])
    expect(engine.embedderState(embedder).complete).toBe(false)
    await store.deleteMessages({ threadId: 't' }, Array.from({ length: count - 1 }, (_, at) => id(at + 1)))
    indexAll(engine)
    expect(engine.embedderState(embedder).complete).toBe(true)
  })

  it('[K1.12] leave nothing in the index when they are deleted during a rebuild', async () => {
    const { store, databases } = await engineBeside()
    const recall = await store.getStore('recall')
    recall?.embedWith({ id: embedder, maxBatch: 8, embed: async (texts) => texts.map(() => [1, 0.5]) })
    for (let at = 0; at < 20; at += 1) {
      const gone = store.deleteMessages({ threadId: 't' }, [id(2 * at)])
      const again = recall?.reindex()
      await Promise.all([gone, again, store.deleteMessages({ threadId: 't' }, [id(2 * at + 1)])])
    }
    await expect
      .poll(async () => ({ ...(await recall?.status()), ...differences(databases) }))
      .toMatchObject({ pending: 0, embedders: [{ complete: true, pending: 0, embedded: count - 40 }], ...same })
  })
})
