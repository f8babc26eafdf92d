import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

describe('explainPrompt', () => {
  it('says where each part came from and what it costs', async () => {
    const agent = new Agent({ id: 'a', instructions: 'Be brief.', model: scriptedModel(['x']) })
    const { parts, tokens, prefix } = await agent.explainPrompt('Hello there')
    expect(parts.map(({ source, role, preview }) => [source, role, preview])).toEqual([
      ['instructions', 'system', 'Be brief.'],
      ['input', 'user', 'Hello there'],
    ])
    expect(tokens).toBeGreaterThan(0)
    expect(prefix.messages).toBe(0)
  })

  it('[P1.2] counts what the last call on the thread was sent as a prefix of the next', async () => {
    const model = scriptedModel(['one', 'two', 'three'])
    const agent = new Agent({ id: 'a', instructions: 'Be brief.', model, memory: new Memory({ lastMessages: 10 }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const memory = { thread: 't', resource: 'u' }
    await agent.generate('first', { memory })
    await agent.generate('second', { memory })
    const explained = await agent.explainPrompt('third', { memory })
    await agent.generate('third', { memory })
    const [, before, next] = model.calls.map((call) => call.prompt)
    expect(next?.slice(0, before?.length)).toEqual(before)
    expect(explained.prefix.messages).toBe(before?.length)
    expect(explained.parts).toHaveLength(next?.length ?? 0)
    await heed.close()
  })
})
