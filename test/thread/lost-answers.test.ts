import { describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type ThreadStore } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const thread = { threadId: 't', resourceId: 'u' }

/** A store whose answer to one call is lost: what was asked happened, or didn't. */
function losing(method: keyof ThreadStore, when: 'before' | 'after', call = 1): ThreadStore {
  const store = new InMemoryStore()
  let calls = 0
  return new Proxy<ThreadStore>(store, {
    get(_target, key: keyof ThreadStore) {
      const own = store[key] as (...args: unknown[]) => Promise<unknown>
      if (typeof own !== 'function') return own
      if (key !== method) return own.bind(store)
      return async (...args: unknown[]) => {
        const lost = ++calls === call
        if (lost && when === 'before') throw new Error('connection lost')
        const answer = await own.apply(store, args)
        if (lost) throw new Error('connection lost')
        return answer
      }
    },
  })
}

describe('a store whose answer is lost', () => {
  it.each(['before', 'after'] as const)('[A4.1] accepts once all the same, %s the write', async (when) => {
    const model = scriptedModel(['hello'])
    const agent = new Agent({ id: 'a', model })
    const heed = new Heed({ agents: { agent }, storage: losing('accept', when), logger: silentLogger })
    const receipt = agent.sendMessage({ contents: 'hi', id: 's1' }, thread)
    expect(await receipt.outcome).toMatchObject({ action: 'woke', step: 0 })
    await expect.poll(async () => (await agent.activeRun(thread)) === null && model.calls.length).toBe(1)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.map((message) => message.role)).toEqual(['signal', 'assistant'])
    await heed.close()
  })

  it.each(['before', 'after'] as const)('[R6.2] decides once all the same, %s the write', async (when) => {
    let paid = 0
    const pay = createTool({ id: 'pay', requireApproval: true, execute: () => `paid ${++paid}` })
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'done']), tools: { pay } })
    const heed = new Heed({ agents: { agent }, storage: losing('decide', when), logger: silentLogger })
    const { runId } = await agent.generate('pay', { memory: { thread: 't', resource: 'u' } })
    expect(await agent.sendToolApproval({ ...thread, approved: true })).toMatchObject({ accepted: true, runId })
    await expect.poll(async () => (await agent.activeRun(thread)) === null).toBe(true)
    expect(paid).toBe(1)
    await heed.close()
  })

  it.each([['before', 1], ['after', 1]] as const)('[R5.2] goes on from what is stored when a commit fails, %s the write', async (when, call) => {
    const model = scriptedModel(['one', 'two', 'three'])
    const agent = new Agent({ id: 'a', model })
    const heed = new Heed({ agents: { agent }, storage: losing('commitStep', when, call), logger: silentLogger })
    agent.sendMessage('hi', thread)
    await expect.poll(async () => (await agent.activeRun(thread)) === null && model.calls.length > 0, { timeout: 20_000 }).toBe(true)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.map((message) => message.role)).toEqual(['signal', 'assistant'])
    expect(JSON.stringify(messages)).not.toContain('"error"')
    await heed.close()
  })

  it('leaves a store open that another Heed still uses', async () => {
    const storage = new InMemoryStore()
    const [first, second] = ['a', 'b'].map((id) => new Agent({ id, model: scriptedModel(['x'], { loop: true }) }))
    const heeds = [new Heed({ agents: { first: first as Agent }, storage }), new Heed({ agents: { second: second as Agent }, storage })]
    await first?.generate('x', { memory: { thread: 't1', resource: 'u' } })
    await second?.generate('x', { memory: { thread: 't2', resource: 'u' } })
    await heeds[0]?.close()
    expect((await second?.generate('x', { memory: { thread: 't2', resource: 'u' } }))?.text).toBe('x')
    await heeds[1]?.close()
  })
})
