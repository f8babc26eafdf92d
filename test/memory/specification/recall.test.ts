import { describe, expect, it } from 'vitest'
import { Agent, Heed, Memory, ModelRouterEmbeddingModel, silentLogger, type AnyEmbeddingModel, type MemoryConfig, type Message } from '../../../src/index.ts'
import { fastembed, localEmbedder } from '../../../src/embed/index.ts'
import { MessageHistory, TokenLimiter, type Processor } from '../../../src/processors/index.ts'
import { LibSQLStore, LibSQLVector } from '../../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { thrownBy } from '../../agent/asking.ts'
import { texts } from '../../thread/said.ts'
import { allIsEmbedded, kept } from '../kept.ts'
import { newFile } from '../../new-file.ts'

const said = (thread: string) => ({ memory: { thread, resource: 'user-1' } })

function desk(config: MemoryConfig = {}) {
  const model = scriptedModel(() => 'Yes.')
  const agent = new Agent({ id: 'support', name: 'Support', instructions: 'Be of help.', model, memory: new Memory(config) })
  kept(new Heed({ agents: { agent }, storage: kept(new LibSQLStore({ url: `file:${newFile()}` })), logger: silentLogger }))
  return { agent, model }
}

/** Deadlines point one way, everything else another. */
const dates: AnyEmbeddingModel = {
  specificationVersion: 'v4', provider: 'test', modelId: 'dates', maxEmbeddingsPerCall: 8,
  doEmbed: async ({ values }) => ({ embeddings: values.map((text) => (/deadline|due|finish by/i.test(text) ? [1, 0.1] : [0.1, 1])) }),
}

describe('every call about recall', () => {
  it('new Memory() recalls by itself', async () => {
    const { agent, model } = desk()
    await agent.generate('The project deadline is in May.', said('thread-1'))
    await agent.generate('When was the project deadline?', said('thread-2'))
    expect(texts(model.calls.at(-1)?.prompt ?? []).at(-1)).toMatch(/recalled-messages[^]*in May/)
  })

  it('recall(): like a list, and by meaning, with threadConfig and without', async () => {
    const { agent } = desk({ embedder: dates })
    for (const text of ['It must be finished; finish by the 4th.', 'Tea or coffee?', 'Nice weather.', 'My cat is ill.']) await agent.generate(text, said('thread-123'))
    const memory = await agent.getMemory()
    expect((await memory.recall({ threadId: 'thread-123', perPage: 50 })).messages).toHaveLength(8)
    await allIsEmbedded(memory)
    const search = { threadId: 'thread-123', vectorSearchString: 'What did we say about the project deadline?' }
    const { messages, hits } = await memory.recall({ ...search, threadConfig: { semanticRecall: true } })
    expect(hits?.[0]?.text).toBe('It must be finished; finish by the 4th.')
    expect(messages[0]?.id).toBe(hits?.[0]?.messageId)
    expect((await memory.recall(search)).hits?.[0]?.text).toBe(hits?.[0]?.text)
    expect((await memory.recall({ ...search, resourceId: 'user-1' })).hits?.[0]?.text).toBe(hits?.[0]?.text)
  })

  it('storage and vector of its own, in one file', async () => {
    const url = `file:${newFile()}`
    const storage = kept(new LibSQLStore({ id: 'agent-storage', url }))
    const vector = kept(new LibSQLVector({ id: 'agent-vector', url }))
    const { agent } = desk({ storage, vector, embedder: dates })
    await agent.generate('Hand it in: due on Friday.', said('thread-1'))
    const memory = await agent.getMemory()
    await allIsEmbedded(memory)
    expect((await memory.recall({ threadId: 'thread-1', vectorSearchString: 'deadline' })).hits?.[0]?.text).toContain('Friday')
  })

  it('topK, messageRange and scope', async () => {
    const { agent, model } = desk({ options: { semanticRecall: { topK: 3, messageRange: 2, scope: 'resource' } } })
    for (const text of ['one', 'two', 'three', 'The gate code is 4711.', 'five', 'six', 'seven']) await agent.generate(text, said('thread-1'))
    const memory = await agent.getMemory()
    const { messages, hits } = await memory.recall({ threadId: 'thread-9', resourceId: 'user-1', vectorSearchString: 'gate code' })
    expect([hits?.length, hits?.[0]?.text]).toEqual([3, 'The gate code is 4711.'])
    expect(messages.length).toBeGreaterThan(3)
    const best = await memory.recall({ threadId: 'thread-9', resourceId: 'user-1', vectorSearchString: 'gate code', threadConfig: { semanticRecall: { topK: 1 } } })
    expect(best.messages.map(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))).toEqual(['three', 'Yes.', 'The gate code is 4711.', 'Yes.', 'five'])
    const alone = await memory.recall({ threadId: 'thread-9', resourceId: 'user-1', vectorSearchString: 'gate code', threadConfig: { semanticRecall: { scope: 'thread' } } })
    expect(alone.messages).toEqual([])
    const asked = async (semanticRecall: object) => {
      await agent.generate('What is the gate code?', { memory: { ...said('thread-9').memory, options: { semanticRecall } } })
      return texts(model.calls.at(-1)?.prompt ?? []).join('\n')
    }
    expect(await asked({ scope: 'thread' })).not.toContain('4711')
    expect(await asked({})).toContain('4711')
    // By default it is the resource.
    const byDefault = await (await desk().agent.getMemory()).recall({ threadId: 'thread-9', resourceId: 'user-1', vectorSearchString: 'gate code' })
    expect(byDefault.scope).toBe('resource')
  })

  it('embedders in every form', () => {
    for (const embedder of [new ModelRouterEmbeddingModel('openai/text-embedding-3-small'), 'openai/text-embedding-3-small', 'google/gemini-embedding-001', fastembed, localEmbedder(), dates] as const) {
      expect(new Memory({ embedder }).embedder?.id).toMatch(/\//)
    }
    expect(new Agent({ memory: new Memory({ embedder: fastembed }) })).toBeInstanceOf(Agent)
    expect(thrownBy(() => new Memory({ embedder: 'nobody' }))).toMatchObject({ code: 'unknown_provider' })
  })

  it('an embedder and the one before it; not the one before it alone', () => {
    expect(new Memory({ embedder: dates, formerEmbedder: 'openai/text-embedding-3-small' }).embedder?.former?.id).toBe('openai/text-embedding-3-small')
    expect(new Memory({ embedder: dates, formerEmbedder: dates }).embedder).not.toHaveProperty('former')
    expect(thrownBy(() => new Memory({ formerEmbedder: dates }))).toMatchObject({ code: 'invalid_argument', details: { option: 'formerEmbedder' } })
  })

  it('an index that the store does not support is rejected by name, in both forms', () => {
    for (const indexConfig of [{ type: 'hnsw', metric: 'dotproduct', m: 16, efConstruction: 64 }, { type: 'hnsw', hnsw: { m: 16 } }] as const) {
      expect(thrownBy(() => new Memory({ options: { semanticRecall: { topK: 5, messageRange: 2, indexConfig } } }))).toMatchObject({ code: 'unsupported_option', details: { option: expect.stringContaining('indexConfig') } })
    }
    expect(new Memory({ semanticRecall: { indexConfig: { type: 'flat', metric: 'cosine' } } })).toBeInstanceOf(Memory)
  })

  it('turned off: no recall block', async () => {
    const { agent, model } = desk({ options: { semanticRecall: false } })
    await agent.generate('The project deadline is in May.', said('thread-1'))
    await agent.generate('When was the project deadline?', said('thread-2'))
    expect(texts(model.calls.at(-1)?.prompt ?? []).join()).not.toContain('recalled-messages')
  })
})

describe('every call about the processors of memory', () => {
  it('options at the top, and enabled: true', async () => {
    const storage = kept(new LibSQLStore({ id: 'memory-store', url: `file:${newFile()}` }))
    const vector = kept(new LibSQLVector({ id: 'memory-vector', url: storage.url }))
    const model = scriptedModel(() => 'Yes.')
    const memory = new Memory({ storage, vector, embedder: dates, lastMessages: 10, semanticRecall: { enabled: true }, workingMemory: { enabled: true } })
    const agent = new Agent({ name: 'semantic-agent', instructions: 'Be of help.', model, memory })
    await agent.generate('Good day', said('thread-1'))
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['updateWorkingMemory'])
  })

  it('a MessageHistory by hand, with a TokenLimiter behind it', async () => {
    const url = `file:${newFile()}`
    const model = scriptedModel(() => 'Yes.')
    const agent = new Agent({
      name: 'custom', instructions: 'Be of help.', model,
      memory: new Memory({ storage: kept(new LibSQLStore({ id: 'memory-store', url })), lastMessages: 1 }),
      inputProcessors: [new MessageHistory({ storage: kept(new LibSQLStore({ id: 'memory-store', url })), lastMessages: 20 }), new TokenLimiter({ limit: 4000 })],
    })
    for (let turn = 0; turn < 5; turn += 1) await agent.generate(`${turn}`, said('thread-1'))
    expect(texts(model.calls.at(-1)?.prompt ?? []).filter((text) => text.startsWith('user: '))).toHaveLength(5)
  })

  const blocker = {
    id: 'content-blocker',
    processOutputResult: async ({ messages, abort }) => {
      if (messages.some((message: Message) => JSON.stringify(message).includes('rude'))) abort('Blocked')
      return messages
    },
  } satisfies Processor
  const validator = {
    id: 'input-validator',
    processInput: async ({ messages, abort }) => {
      if (JSON.stringify(messages.findLast(({ role }) => role === 'user')).includes('wrong')) abort('Not that')
      return messages
    },
  } satisfies Processor

  it('a guardrail after the answer: nothing is stored, on a thread and without one', async () => {
    const model = scriptedModel(() => 'Something rude.')
    const agent = new Agent({ name: 'safe', instructions: 'Be of help.', model, memory: new Memory({ storage: kept(new LibSQLStore({ url: `file:${newFile()}` })), lastMessages: 10 }), outputProcessors: [blocker] })
    expect((await agent.generate('Good day')).tripwire?.reason).toBe('Blocked')
    expect((await agent.generate('Good day', said('thread-1'))).tripwire?.reason).toBe('Blocked')
    expect((await (await agent.getMemory()).recall({ threadId: 'thread-1' })).messages).toEqual([])
  })

  it('a guardrail before the model: it isn\'t called, and nothing is stored', async () => {
    const model = scriptedModel(() => 'Yes.')
    const agent = new Agent({ name: 'validated', instructions: 'Be of help.', model, memory: new Memory({ storage: kept(new LibSQLStore({ url: `file:${newFile()}` })), lastMessages: 10 }), inputProcessors: [validator] })
    expect((await agent.generate('all wrong', said('thread-1'))).tripwire?.reason).toBe('Not that')
    expect(model.calls).toEqual([])
    expect((await (await agent.getMemory()).recall({ threadId: 'thread-1' })).messages).toEqual([])
  })
})
