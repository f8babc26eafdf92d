import { spawnSync } from 'node:child_process'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, createConsoleLogger, Memory, silentLogger, type AnyEmbeddingModel, type Logger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { openHeed } from '../thread/places.ts'
import { allIsEmbedded } from './kept.ts'

/** A model that counts the texts it gets. */
function counting(provider = 'counted'): AnyEmbeddingModel & { texts: string[] } {
  const texts: string[] = []
  return {
    texts, specificationVersion: 'v4', provider, modelId: 'small', maxEmbeddingsPerCall: 64,
    doEmbed: async ({ values }) => {
      texts.push(...values)
      return { embeddings: values.map((text) => [text.length, 1, /tea/.test(text) ? 1 : 0]) }
    },
  }
}

function newStore(): LibSQLStore {
  const store = new LibSQLStore({ url: `file:${newFile()}` })
  onTestFinished(() => store.close())
  return store
}

async function say(memory: Memory, threadId: string, contents: readonly string[], resourceId = 'ada'): Promise<void> {
  await memory.createThread({ threadId, resourceId })
  await memory.saveMessages({ threadId, messages: contents.map((content, at) => ({ id: `${threadId}-${at}`, role: 'user', content })) })
}

async function complete(memory: Memory, embedded: number): Promise<void> {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders: [first] } = await memory.recallStatus()
    return { pending, rebuilding, complete: first?.complete, embedded: first?.embedded }
  }).toEqual({ pending: 0, rebuilding: undefined, complete: true, embedded })
}

const remarks = Array.from({ length: 30 }, (_, at) => `Remark ${at} on tea.`)

describe('what an embedder is asked for', () => {
  it('[K1.19] no text twice: clones, other threads and other resources use the vectors that are stored', async () => {
    const model = counting()
    const memory = new Memory({ storage: newStore(), embedder: model })
    await say(memory, 'source', remarks)
    await complete(memory, 30)
    const asked = model.texts.length
    expect(new Set(model.texts).size).toBe(asked)
    await memory.cloneThread({ sourceThreadId: 'source', newThreadId: 'copy' })
    await memory.cloneThread({ sourceThreadId: 'source', newThreadId: 'theirs', resourceId: 'bob' })
    await say(memory, 'other', remarks.slice(0, 10))
    await complete(memory, 100)
    expect(model.texts).toHaveLength(asked)
    const hits = async (threadId: string) => (await memory.recall({ threadId, vectorSearchString: 'Remark 7 on tea.', threadConfig: { semanticRecall: { scope: 'thread', topK: 3, messageRange: 0 } } })).hits
    expect((await hits('copy'))?.map(({ text, reasons }) => [text, reasons])).toEqual((await hits('source'))?.map(({ text, reasons }) => [text, reasons]))
  })

  it('[K1.19] each message alone: as many characters as are stored', async () => {
    const model = counting()
    const memory = new Memory({ storage: newStore(), embedder: model })
    await say(memory, 'one', remarks)
    await complete(memory, 30)
    expect(model.texts.toSorted()).toEqual(remarks.toSorted())
  })

  it('[K1.19] a reindex makes every vector again, each text once', async () => {
    const model = counting()
    const memory = new Memory({ storage: newStore(), embedder: model })
    await say(memory, 'one', remarks)
    await say(memory, 'two', remarks)
    await complete(memory, 60)
    const before = model.texts.splice(0).toSorted()
    await memory.reindex()
    expect(model.texts.toSorted()).toEqual(before)
  })

  it('[K1.19] a model by its name and as an object is one embedder', async () => {
    const storage = newStore()
    const model = counting('openai.embedding')
    const memory = new Memory({ storage, embedder: model })
    await say(memory, 'one', remarks.slice(0, 3))
    await complete(memory, 3)
    const [first] = (await memory.recallStatus()).embedders
    expect(first?.id).toBe('openai/small')
    const named = new Memory({ storage, embedder: 'openai/small' })
    expect((await named.recallStatus()).embedders.map(({ id, complete: done }) => [id, done])).toEqual([['openai/small', true]])
  })
})

describe('the progress of long indexing', () => {
  const many = Array.from({ length: 700 }, (_, at) => `Remark ${at}.`)

  /** Stores 700 messages and waits for their vectors. */
  async function embedMany(logger: Logger): Promise<void> {
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), memory: new Memory({ embedder: counting() }) })
    openHeed({ agent }, newStore(), { logger })
    const memory = await agent.getMemory()
    await say(memory, 'one', many)
    await agent.generate('Hello.', { memory: { thread: 'two', resource: 'ada' } })
    await allIsEmbedded(memory)
  }

  it('[K1.21] is a line of the log about every tenth of it, and the first is a warning', async () => {
    const logged: Array<[level: string, message: string]> = []
    const keep = (level: string) => (message: string) => void logged.push([level, message])
    await embedMany({ debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') })
    const lines = logged.filter(([, line]) => /^recall: \d+ of \d+ passages have vectors of 'counted\/small'$/.test(line))
    expect(lines.length).toBeGreaterThanOrEqual(2)
    expect(lines.map(([level]) => level)).toEqual(['warn', ...lines.slice(1).map(() => 'info')])
  })

  it('[K1.21] is a bar of the console logger on a terminal, which is removed at the end, and no line', async () => {
    const written: string[] = []
    await embedMany(createConsoleLogger({ progress: true, write: (text) => void written.push(text) }))
    const erased = '\r\u001B[K'
    await expect.poll(() => written.at(-1)).toBe(erased)
    expect(written.every((text) => text.startsWith(erased))).toBe(true)
    expect(written[0]).toMatch(/recall: vectors of 'counted\/small' [█░]{24} \d+ % \(\d+ of \d+\)\r$/)
  })

  it('[K1.21] is a line of a program without a logger, once, where standard error is no terminal', () => {
    const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
    const program = `
      import { Agent, Heed, InMemoryStore, Memory } from ${source('index.ts')}
      import { scriptedModel } from ${source('testing/index.ts')}
      const doEmbed = async ({ values }) => ({ embeddings: values.map((text) => [text.length, 1]) })
      const embedder = { specificationVersion: 'v4', provider: 'counted', modelId: 'small', maxEmbeddingsPerCall: 64, doEmbed }
      const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), memory: new Memory({ embedder }) })
      const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
      const memory = await agent.getMemory()
      await memory.createThread({ threadId: 'one', resourceId: 'ada' })
      await memory.saveMessages({ threadId: 'one', messages: Array.from({ length: 700 }, (_, at) => ({ id: 'm' + at, role: 'user', content: 'Remark ' + at })) })
      await agent.generate('Hello.', { memory: { thread: 'two', resource: 'ada' } })
      await memory.reindex()
      await heed.close()`
    const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module-typescript', '--eval', program], { encoding: 'utf8' })
    expect([status, stdout]).toEqual([0, ''])
    expect(stderr.split('\n').filter((line) => line !== '')).toEqual([expect.stringMatching(/^heed warn: recall: \d+ of \d+ passages have vectors of 'counted\/small' \{/)])
  })

  it('[K1.21] of words is reported too', async () => {
    const store = newStore()
    await say(new Memory({ storage: store, semanticRecall: false }), 'one', Array.from({ length: 2_500 }, (_, at) => `Remark ${at}.`))
    const seen: Array<[work: string, progress: { done: number; total: number } | undefined]> = []
    const index = await store.getStore('recall')
    index?.reportTo?.({ ...silentLogger, progress: (work, progress) => void seen.push([work, progress]) })
    await expect.poll(async () => (await index?.status())?.rebuilding).toBeUndefined()
    await expect.poll(() => seen.at(-1)).toEqual(['recall: messages', undefined])
    expect(seen[0]).toEqual(['recall: messages', { done: expect.any(Number) as number, total: 2_500 }])
  })
})
