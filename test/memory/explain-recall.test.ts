import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, type AnyEmbeddingModel, type RecallExplanation, type MemoryConfig } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { kept } from './kept.ts'

const at = { threadId: 'trips', resourceId: 'ada' }
const asked = { ...at, vectorSearchString: 'Which train did we take to Lisbon?' }
const texts = [
  'Where did we stay in Lisbon?', 'In a small hotel by the river.', 'We took the night train to Lisbon in the spring, and it was late.',
  'The train to Porto was full.', 'My cat is ill.', '...',
]

async function trips(config: MemoryConfig = {}): Promise<Memory> {
  const memory = new Memory({ storage: kept(new LibSQLStore({ url: `file:${newFile()}` })), ...config })
  await memory.createThread(at)
  await memory.createThread({ threadId: 'other', resourceId: 'ada' })
  await memory.createThread({ threadId: 'foreign', resourceId: 'bob' })
  const messages = texts.map((content, n) => ({ id: `m${n}`, role: 'user' as const, content, createdAt: new Date(1_700_000_000_000 + n * 1_000), ...at }))
  await memory.saveMessages({ messages: [...messages, { ...messages[3], id: 'elsewhere', threadId: 'other', content: 'Trains are slow.' }] as never })
  await memory.saveMessages({ messages: [{ ...messages[2], id: 'secret', threadId: 'foreign', resourceId: 'bob' }] as never })
  return memory
}

const sum = ({ reasons }: RecallExplanation) => reasons.reduce((total, { points }) => total + points, 0)

describe('explainRecall()', () => {
  it('[K2.21] says of each message that is found what makes up its score, in points and in sentences', async () => {
    const memory = await trips()
    const { hits = [] } = await memory.recall({ ...asked, perPage: 3 })
    const { messages } = await memory.explainRecall({ ...asked, perPage: 3 })
    expect(messages.map(({ messageId, score, rank, found }) => ({ messageId, score, rank, found }))).toEqual(
      hits.map(({ messageId, score }, n) => ({ messageId, score: expect.closeTo(score, 6) as number, rank: n + 1, found: true })),
    )
    for (const one of messages) expect(sum(one)).toBeCloseTo(one.score, 6)
    const [best] = messages
    expect(best).toMatchObject({ messageId: 'm2', text: texts[2], summary: 'Found, at place 1 of the messages that fit.' })
    const words = best?.reasons.find(({ reason }) => reason === 'words')
    expect(words?.text).toMatch(/^It has words of the question: /)
    // "took" is a form of "take".
    expect(new Set(words?.words?.map(({ word }) => word))).toEqual(new Set(['train', 'take', 'Lisbon']))
    expect(words?.words?.reduce((total, { weight }) => total + weight, 0)).toBeCloseTo(1)
    const effects = best?.reasons.map(({ points }) => Math.abs(points)) ?? []
    expect(effects).toEqual(effects.toSorted((a, b) => b - a))
  })

  it('[K2.21] says why a message is not found', async () => {
    const memory = await trips()
    const why = async (id: string, more: object = {}) => {
      const { messages: [one, ...others] } = await memory.explainRecall({ ...asked, perPage: 1, message: { id }, ...more })
      expect(others).toEqual([])
      return one
    }
    expect(await why('m2')).toMatchObject({ found: true, rank: 1 })
    const porto = await why('m3')
    expect(porto).toMatchObject({ found: false, missing: 'rank', text: texts[3] })
    expect(porto?.rank).toBeGreaterThan(1)
    expect(porto?.summary).toBe(`Not found: it is at place ${porto?.rank} of the messages that fit, and the search returns 1.`)
    expect(sum(porto as RecallExplanation)).toBeCloseTo(porto?.score ?? 9, 6)
    const hits = await memory.recall({ ...asked, perPage: 20 })
    expect(hits.hits?.[(porto?.rank ?? 0) - 1]?.messageId).toBe('m3')
    expect(await why('m3', { perPage: 20, threadConfig: { semanticRecall: { threshold: 0.9 } } })).toMatchObject({ found: false, missing: 'threshold' })
    expect(await why('m3', { threadConfig: { semanticRecall: { filter: { role: 'assistant' } } } })).toMatchObject({ missing: 'filter' })
    expect(await why('m3', { filter: { dateRange: { end: new Date(1_700_000_000_000) } } })).toMatchObject({ missing: 'filter' })
    const ofOther = { id: 'elsewhere', threadId: 'other' }
    expect(await why('', { perPage: 20, message: ofOther })).toMatchObject({ found: true, threadId: 'other' })
    expect(await why('', { perPage: 20, message: ofOther, threadConfig: { semanticRecall: { scope: 'thread' } } })).toMatchObject({ missing: 'filter' })
    const none = { perPage: 20, vectorSearchString: 'unicorns' }
    expect(await why('m4', none)).toMatchObject({ found: false, missing: 'unrelated', score: 0, reasons: [] })
  })

  it('[K2.21] knows messages without text, of a run that may still withdraw them, and none of another resource', async () => {
    const memory = await trips()
    await memory.saveMessages({ messages: [{ id: 'file', role: 'user', content: '', ...at }] as never })
    const why = (message: { id: string; threadId?: string }) => memory.explainRecall({ ...asked, perPage: 50, message })
    expect((await why({ id: 'file' })).messages).toMatchObject([{ found: false, missing: 'no_text' }])
    for (const message of [{ id: 'gone' }, { id: 'secret' }, { id: 'secret', threadId: 'foreign' }]) {
      await expect(why(message)).rejects.toMatchObject({ code: 'not_found' })
    }
    await expect(memory.forResource('bob').explainRecall({ ...asked, resourceId: 'ada' })).rejects.toMatchObject({ code: 'thread_forbidden' })

    const gate = Promise.withResolvers<void>()
    const agent = new Agent({ id: 'guide', instructions: 'Be brief.', model: scriptedModel([{ text: 'Late.', gate: gate.promise }]), memory: new Memory() })
    const heed = kept(new Heed({ agents: { agent }, storage: kept(new InMemoryStore()) }))
    const { stored, outcome } = agent.sendMessage({ id: 'now', contents: 'The train to Lisbon.' }, at)
    await stored
    await expect.poll(async () => (await agent.threads().store.getThread(at))?.status).toBe('running')
    const own = await agent.getMemory()
    const explained = await own?.explainRecall({ ...asked, message: { id: 'now' } })
    expect(explained?.messages).toMatchObject([{ found: false, missing: 'running' }])
    gate.resolve()
    await outcome
    await heed.close()
  })

  it('[K2.21] has the cosine of a meaning, and names what counts against a question', async () => {
    const topics: AnyEmbeddingModel = {
      specificationVersion: 'v4', provider: 'test', modelId: 'topics', maxEmbeddingsPerCall: 8,
      doEmbed: async ({ values }) => ({ embeddings: values.map((text) => (/cat|pet/.test(text) ? [1, 0] : [0.1, 1])) }),
    }
    const memory = await trips({ embedder: topics })
    await expect.poll(async () => (await memory.recallStatus()).embedders[0]?.complete).toBe(true)
    const { messages: [cat] } = await memory.explainRecall({ ...at, vectorSearchString: 'Is our pet well?', perPage: 1 })
    expect(cat).toMatchObject({ messageId: 'm4' })
    expect(cat?.reasons[0]).toMatchObject({ reason: 'meaning', value: 1, cosine: expect.closeTo(1, 2) as number, text: 'It is near in meaning.' })
    const { messages: [question] } = await memory.explainRecall({ ...asked, perPage: 1, message: { id: 'm0' } })
    const against = question?.reasons.find(({ reason }) => reason === 'question')
    expect(against?.points).toBeLessThan(0)
    expect(against?.text).toBe('It asks, or answers nothing, which counts against it.')
  })
})
