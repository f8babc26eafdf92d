import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { TextEmbedder } from '../embedder.ts'
import { LibSQLStore } from '../../store/sqlite/store.ts'
import { WorkerCalls } from './worker-calls.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-recall-processes-'))
const children: ChildProcess[] = []
const open: LibSQLStore[] = []
afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  await Promise.all(open.splice(0).map((store) => store.close()))
})
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
const newPath = () => join(folder, `${files++}.db`)

/** Runs this module text in another process, with `path`, `LibSQLStore`, `LibSQLVector` and `say`. Resolves to its exit code. */
async function another(path: string, code: string): Promise<number | null> {
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
  const text = `
    import { LibSQLStore } from ${module('../../store/sqlite/store.ts')}
    import { LibSQLVector } from ${module('../vectors/vector.ts')}
    const path = ${JSON.stringify(path)}
    async function say(store, threadId, ...texts) {
      await store.createThread({ id: threadId, resourceId: 'r', now: 1 })
      const content = (text) => ({ format: 2, parts: [{ type: 'text', text }] })
      const messages = texts.map((text, at) => ({ id: threadId + at, role: 'user', createdAt: new Date(), content: content(text) }))
      await store.saveMessages([{ scope: { threadId, resourceId: 'r' }, messages }])
    }
    ${code}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'inherit', 'inherit'] })
  children.push(child)
  const [ended] = (await once(child, 'exit')) as [number | null]
  return ended
}

async function recallAt(path: string) {
  const store = new LibSQLStore({ url: `file:${path}` })
  open.push(store)
  const recall = await store.getStore('recall')
  if (!recall) throw new Error('no recall')
  return { store, recall }
}

const dogs: TextEmbedder = {
  id: 'test/dogs',
  maxBatch: 16,
  embed: async (texts) => texts.map((text) => (/dog|hound|puppy/i.test(text) ? [1, 0.05] : [0.05, 1])),
}

describe('recall of messages that another process stored', () => {
  it('[K1.9] finds messages from before and after the first use of recall, by terms at once and by vectors soon', async () => {
    const path = newPath()
    const write = (thread: string, text: string) =>
      another(
        path,
        `const store = new LibSQLStore({ url: 'file:' + path })
        await say(store, '${thread}', '${text}', 'Taxes are due.')
        await store.close()`,
      )
    expect(await write('early', 'An early bird sings.')).toBe(0)
    const { recall } = await recallAt(path)
    recall.embedWith(dogs)
    const found = async (text: string) =>
      (await recall.search({ resourceId: 'r', text, limit: 1, embedder: dogs })).map(({ threadId, messageId, reasons }) => ({
        threadId,
        messageId,
        meaning: reasons.meaning,
      }))[0]
    expect(await found('bird')).toMatchObject({ threadId: 'early', messageId: 'early0' })
    await expect.poll(async () => (await recall.status()).embedders[0]).toMatchObject({ complete: true, embedded: 2, pending: 0 })
    expect(await write('late', 'Our hound is old.')).toBe(0)
    expect(await found('hound')).toMatchObject({ threadId: 'late', messageId: 'late0' })
    await expect.poll(async () => (await recall.status()).embedders[0]).toMatchObject({ embedded: 4, pending: 0 })
    expect(await found('a puppy')).toEqual({ threadId: 'late', messageId: 'late0', meaning: 1 })
  })

  it('[K1.9] finds messages whose process died before it indexed them', async () => {
    const path = newPath()
    const { recall } = await recallAt(path)
    expect(await recall.search({ resourceId: 'r', text: 'walrus', limit: 1 })).toEqual([])
    expect(
      await another(
        path,
        `const store = new LibSQLStore({ url: 'file:' + path })
        await say(store, 't', 'The walrus sings.')
        process.kill(process.pid, 'SIGKILL')`,
      ),
    ).toBe(null)
    expect(await recall.search({ resourceId: 'r', text: 'walrus', limit: 1 })).toMatchObject([{ threadId: 't', messageId: 't0' }])
  })
})

describe('arguments that cannot be passed to a worker', () => {
  it('are rejected with the name of the call, and leave no call pending', async () => {
    const calls = new WorkerCalls(new URL('../vectors/vector.ts', import.meta.url).href, 'vector-worker', { path: newPath() })
    await expect(calls.call('query', [() => 1])).rejects.toMatchObject({ code: 'invalid_argument', details: { call: 'query' } })
    expect(await calls.call('listIndexes', [])).toEqual([])
    await calls.close()
  })

  it('keep no process alive', async () => {
    const code = `
      const vectors = new LibSQLVector({ url: 'file:' + path })
      await vectors.createIndex({ indexName: 'i', dimension: 1 })
      const codes = []
      const failed = (error) => codes.push(error.code, error.details.field)
      await vectors.query({ indexName: 'i', queryVector: [1], filter: { a: () => 1 } }).catch(failed)
      const store = new LibSQLStore({ url: 'file:' + path })
      const recall = await store.getStore('recall')
      await recall.search({ resourceId: 'r', text: 'x', limit: 1, filter: { b: Symbol() } }).catch(failed)
      process.exitCode = codes.join() === 'invalid_argument,filter.a,invalid_argument,filter.b' ? 7 : 1`
    expect(await another(newPath(), code)).toBe(7)
  })
})
