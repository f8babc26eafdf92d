import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, silentLogger, type VectorStore } from 'heed'
import { DuckDBVector } from 'heed/duckdb'
import { LibSQLVector } from 'heed/libsql'
import { SemanticRecall } from 'heed/processors'
import { scriptedModel, virtualClock } from 'heed/testing'
import { dogs } from './dogs.ts'

const at = (thread: string) => ({ memory: { thread, resource: 'ada' } })

/** Waits until every message has its vector. */
async function embedded(memory: Memory): Promise<void> {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders } = await memory.recallStatus()
    return pending + (rebuilding ? 1 : 0) + (embedders[0]?.complete && embedders[0].embedded > 0 ? 0 : 1)
  }, { timeout: 10_000 }).toBe(0)
}

/** The methods of a store alone, as an object of another framework has them. */
function foreign(id: string, changed: Partial<VectorStore> = {}): VectorStore {
  const store = new LibSQLVector({ url: ':memory:' })
  onTestFinished(() => store.close())
  const { createIndex, listIndexes, describeIndex, deleteIndex, upsert, query, deleteVector, deleteVectors } = LibSQLVector.prototype
  const methods = Object.entries({ createIndex, listIndexes, describeIndex, deleteIndex, upsert, query, deleteVector, deleteVectors })
  return { id, ...Object.fromEntries(methods.map(([name, method]) => [name, method.bind(store as never)])), ...changed } as unknown as VectorStore
}

function setUp(memory: Memory, clock?: ReturnType<typeof virtualClock>) {
  const model = scriptedModel(['Noted.'], { loop: true })
  const agent = new Agent({ id: 'guide', model, memory })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore({ ...(clock && { clock }) }), logger: silentLogger })
  onTestFinished(() => heed.close())
  return { agent, model, prompt: () => JSON.stringify(model.calls.at(-1)?.prompt) }
}

describe('vector of a memory', () => {
  it('[K4.4] is any object with the methods of a vector store, from which a run recalls by meaning', async () => {
    const vector = new DuckDBVector()
    onTestFinished(() => vector.close())
    const { agent, prompt } = setUp(new Memory({ embedder: dogs, vector, lastMessages: 2 }))
    await agent.generate('Our hound sleeps all day.', at('monday'))
    await agent.generate('The rent is due.', at('monday'))
    const memory = await agent.getMemory()
    await embedded(memory)
    expect(await vector.listIndexes()).toEqual(['heed_recall_2'])
    await agent.generate('A puppy?', at('friday'))
    expect(prompt()).toContain('Our hound sleeps all day.')
    expect((await memory.recallStatus()).embedders).toMatchObject([{ id: 'test/dogs@duckdb', vectorStore: 'duckdb', removing: 0 }])
    await memory.deleteThread('monday')
    await expect.poll(async () => {
      const found = await vector.query({ indexName: 'heed_recall_2', queryVector: [1, 1], topK: 100 })
      return found.filter(({ metadata }) => metadata.thread_id === 'monday')
    }).toEqual([])
  })

  it('[K4.4] serves a SemanticRecall processor too', async () => {
    const vector = foreign('mine')
    const model = scriptedModel(['Noted.'], { loop: true })
    const recall = new SemanticRecall({ embedder: dogs, vector, topK: 2 })
    const agent = new Agent({ id: 'guide', model, memory: new Memory({ lastMessages: 2 }), inputProcessors: [recall] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    onTestFinished(() => heed.close())
    await agent.generate('Our hound sleeps all day.', at('monday'))
    await agent.generate('The rent is due.', at('monday'))
    await embedded(await agent.getMemory())
    await agent.generate('A puppy?', at('friday'))
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('Our hound sleeps all day.')
    expect(await vector.listIndexes()).toEqual(['heed_recall_2'])
  })

  it('[K4.4] gets the settings of indexConfig in either form, and the separator of its names', async () => {
    const created: object[] = []
    const forms = [{ type: 'hnsw', metric: 'dotproduct', m: 16, efConstruction: 64 }, { type: 'hnsw', metric: 'dotproduct', hnsw: { m: 16, efConstruction: 64 } }] as const
    for (const [n, indexConfig] of forms.entries()) {
      const vector = foreign(`store ${n}`, { indexSeparator: '-' })
      const { createIndex } = vector
      vector.createIndex = ({ indexConfig: given, ...args }) => {
        created.push({ ...args, indexConfig: given })
        return createIndex(args)
      }
      const memory = new Memory({ embedder: dogs, vector, semanticRecall: { topK: 1, indexConfig } })
      const { agent } = setUp(memory)
      await agent.generate('Our hound sleeps all day.', at('monday'))
      await embedded(await agent.getMemory())
      expect(created).toHaveLength(n + 1)
    }
    const wanted = { indexName: 'heed-recall-2', dimension: 2, metric: 'dotproduct', indexConfig: { type: 'hnsw', hnsw: { m: 16, efConstruction: 64 } } }
    expect(created).toEqual([wanted, wanted])
  })

  it('[K4.8] never fails a run, nor delays it beyond its deadline, and recall says why it is incomplete', async () => {
    const clock = virtualClock()
    let answers = true
    const vector = foreign('cloud')
    const { query } = vector
    vector.query = (args) => (answers ? query(args) : new Promise(() => {}))
    const { agent, prompt } = setUp(new Memory({ embedder: dogs, vector, lastMessages: 2 }), clock)
    await agent.generate('Our hound sleeps all day.', at('monday'))
    const memory = await agent.getMemory()
    await clock.advance(1)
    await embedded(memory)
    answers = false
    const running = agent.generate('The hound?', at('friday'))
    await clock.advance(3_000)
    expect((await running).text).toBe('Noted.')
    expect(prompt()).toContain('Our hound sleeps all day.')
    const searching = memory.recall({ threadId: 'monday', vectorSearchString: 'hound' })
    await clock.advance(500)
    expect(await searching).toMatchObject({ incomplete: true, incompleteReason: 'vectors', hits: expect.arrayContaining([expect.objectContaining({ threadId: 'monday' })]) })
    answers = true
    expect((await memory.recall({ threadId: 'monday', vectorSearchString: 'hound' })).incomplete).toBeUndefined()
  })

  it('[K2.7] an embedder beside vector: false is rejected by name: it would make no vector', () => {
    for (const make of [() => new Memory({ embedder: dogs, vector: false }), () => new Memory({ embedder: dogs, formerEmbedder: dogs, vector: false }), () => new SemanticRecall({ embedder: dogs, vector: false })]) {
      expect(make).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { option: 'embedder' } }))
    }
    expect([new Memory({ vector: false }).embedder, new SemanticRecall({ vector: false }).embedder]).toEqual([undefined, undefined])
  })

  it('[K4.4] is rejected by name without the methods that recall calls, without an embedder, and without a name', () => {
    expect(() => new Memory({ embedder: dogs, vector: { query() {}, upsert() {} } as never })).toThrow(/vector must be a vector store.*no createIndex\(\), no listIndexes\(\), no deleteVector\(\)/)
    expect(() => new Memory({ vector: foreign('x') })).toThrow(/needs an embedder/)
    const { id: _, ...nameless } = foreign('x')
    expect(() => new Memory({ embedder: dogs, vector: nameless as VectorStore })).toThrow(/needs an id/)
    expect(() => new SemanticRecall({ vector: foreign('x') })).toThrow(/needs an embedder/)
    const indexConfig = { type: 'hnsw', lists: 4 } as const
    expect(() => new Memory({ embedder: dogs, vector: foreign('x'), semanticRecall: { indexConfig } })).toThrow(/indexConfig.lists is a setting of type 'ivfflat'/)
    expect(() => new Memory({ embedder: dogs, vector: foreign('x'), semanticRecall: { indexConfig: { metric: 'manhattan' as never } } })).toThrow(/metric must be one of/)
    expect(() => new Memory({ embedder: dogs, semanticRecall: { indexConfig: { type: 'hnsw' } } })).toThrow(/does not support an index of type 'hnsw'/)
  })
})
