import { describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore } from '../../src/index.ts'
import { chunksOf } from './asking.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }

/** A value that throws whenever it is read. */
function hostile(): object {
  const refuse = (): never => {
    throw new Error('not to be read')
  }
  return new Proxy({}, { get: refuse, getPrototypeOf: refuse, has: refuse, ownKeys: refuse, getOwnPropertyDescriptor: refuse })
}

describe('[G1.17] a value that can not be read', () => {
  it.each([
    ['thrown by a tool', () => { throw hostile() }],
    ['with which a tool rejects', () => Promise.reject(hostile())],
    ['returned by a tool', () => hostile()],
  ])('%s is an error that the model reads', async (_, execute) => {
    const look = createTool({ id: 'look', execute })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { look } })
    openHeed({ agent }, new InMemoryStore())
    const { text, finishReason } = await agent.generate('Look.', { memory })
    expect([text, finishReason]).toEqual(['Done.', 'stop'])
    expect(JSON.stringify(model.calls[1]?.prompt.at(-1))).toContain('error-text')
  })

  it('thrown by a schema or by requireApproval is an error that the model reads', async () => {
    const look = createTool({
      id: 'look',
      requireApproval: () => {
        throw hostile()
      },
      execute: () => 'seen',
    })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { look } })
    openHeed({ agent }, new InMemoryStore())
    expect((await agent.generate('Look.', { memory })).text).toBe('Done.')
  })
})

describe('[G1.18] metadata of a provider that is not JSON', () => {
  it('is stored as text, and the model is called once', async () => {
    const model = scriptedModel([{
      parts: [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'Hello.' },
        { type: 'text-end', id: '1', providerMetadata: { p: { tokens: 12n as unknown as number } } },
        {
          type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, providerMetadata: { p: { cost: 3n as unknown as number } },
          usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
        },
      ],
    }])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, new InMemoryStore())
    const { text } = await agent.generate('Hi', { memory })
    expect([text, model.callCount]).toEqual(['Hello.', 1])
    const { messages } = await (await agent.getMemory()).recall({ threadId: 't', resourceId: 'u' })
    expect(JSON.stringify(messages)).toContain('"tokens":"12"')
  })

  it('[G1.31] reaches subscribers as text in a raw chunk', async () => {
    const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } }
    const model = scriptedModel([{
      parts: [
        { type: 'raw', rawValue: { tokens: 12n } },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'Hello.' },
        { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
      ],
    }])
    const stream = await new Agent({ id: 'a', model }).stream('Hi', { includeRawChunks: true })
    const chunks = await chunksOf(stream)
    expect(chunks.find(({ type }) => type === 'raw')).toMatchObject({ payload: { tokens: '12' } })
  })
})
