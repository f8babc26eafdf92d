import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Memory, type AnyEmbeddingModel, type Logger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { openHeed } from '../thread/places.ts'

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

  it('logs its progress where there is much to embed', async () => {
    const logged: string[] = []
    const keep = (message: string) => void logged.push(message)
    const logger: Logger = { debug: keep, info: keep, warn: keep, error: keep }
    const agent = new Agent({ id: 'a', model: scriptedModel(['Hi.']), memory: new Memory({ embedder: counting() }) })
    openHeed({ agent }, newStore(), { logger })
    const memory = await agent.getMemory()
    await say(memory, 'one', Array.from({ length: 700 }, (_, at) => `Remark ${at}.`))
    await agent.generate('Hello.', { memory: { thread: 'two', resource: 'ada' } })
    await expect.poll(async () => (await memory.recallStatus()).embedders[0]?.complete).toBe(true)
    expect(logged.filter((line) => /^recall: \d+ of \d+ passages have vectors of 'counted\/small'$/.test(line)).length).toBeGreaterThanOrEqual(2)
  })
})
