import { describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type ThreadStore } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const thread = { threadId: 't', resourceId: 'u' }

/** A store whose answer to one call is lost: what was asked happened, or didn't. */
function losing(method: keyof ThreadStore, when: 'before' | 'after', call = 1): ThreadStore {
  const store: ThreadStore = new InMemoryStore()
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

describe('a store whose response is lost', () => {
  it.each(['before', 'after'] as const)('[A4.1] accepts once if the response is lost %s the write', async (when) => {
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

  it.each(['before', 'after'] as const)('[R6.2] decides once if the response is lost %s the write', async (when) => {
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

  it('[R6.10] does not accept a decision whose first attempt was lost and that another caller overtook', async () => {
    const storage = new InMemoryStore()
    const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c1', input: {} }] }, 'done']), tools: { pay } })
    const decide = storage.decide.bind(storage)
    storage.decide = async (...asked) => {
      storage.decide = decide
      await decide({ threadId: 't' }, { toolCallId: 'c1', approved: false, by: 'ann' })
      throw new Error(`connection lost before ${asked.length} arguments were read`)
    }
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    await agent.generate('pay', { memory: { thread: 't', resource: 'u' } })
    await expect(agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })).rejects.toMatchObject({
      code: 'run_not_suspended', details: { decided: { approved: false, by: 'ann' } },
    })
    await heed.close()
  })

  it.each([['before', 1], ['after', 1]] as const)('[R5.2] continues from the stored state if a commit fails %s the write', async (when, call) => {
    const model = scriptedModel(['one', 'two', 'three'])
    const agent = new Agent({ id: 'a', model })
    const heed = new Heed({ agents: { agent }, storage: losing('commitStep', when, call), logger: silentLogger })
    agent.sendMessage('hi', thread)
    await expect.poll(async () => (await agent.activeRun(thread)) === null && model.calls.length > 0).toBe(true)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.map((message) => message.role)).toEqual(['signal', 'assistant'])
    expect(JSON.stringify(messages)).not.toContain('"error"')
    await heed.close()
  })

  describe.each([['before', 1], ['after', 1], ['before', 2], ['after', 2]] as const)('when a commit fails, %s the write %i', (when, call) => {
    const memory = { thread: 't', resource: 'u' }
    const agentWith = (storage: ThreadStore) => {
      let looked = 0
      const look = createTool({ id: 'look', idempotent: true, execute: () => `looked ${++looked}` })
      const agent = new Agent({
        id: 'a',
        model: scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'It is there.' : { toolCalls: [{ toolName: 'look', toolCallId: 'c' }] })),
        tools: { look },
      })
      return { agent, heed: new Heed({ agents: { agent }, storage, logger: silentLogger }) }
    }

    it('[R10.2] resolves generate() as the continued run ends', async () => {
      const { agent, heed } = agentWith(losing('commitStep', when, call))
      const result = await agent.generate('hi', { memory })
      expect(result).toMatchObject({ text: 'It is there.', finishReason: 'stop' })
      expect((await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
      await heed.close()
    })

    it('[R10.2] marks in stream() the step from which the run continues, and ends it', async () => {
      const { agent, heed } = agentWith(losing('commitStep', when, call))
      const stream = await agent.stream('hi', { memory })
      const chunks = []
      for await (const chunk of stream.fullStream) chunks.push(chunk)
      expect(chunks.filter(({ type }) => type === 'data-run-resumed')).toHaveLength(1)
      expect(await stream.text).toBe('It is there.')
      await heed.close()
    })
  })

  it.each(['before', 'after'] as const)('[R10.2] resolves generate() if the last commit fails %s the write', async (when) => {
    const agent = new Agent({ id: 'a', model: scriptedModel(['One.', 'Two.']) })
    const heed = new Heed({ agents: { agent }, storage: losing('commitStep', when), logger: silentLogger })
    const { text, messages, usage } = await agent.generate('hi', { memory: { thread: 't', resource: 'u' } })
    expect(text).toBe(when === 'after' ? 'One.' : 'Two.')
    expect([messages.length, usage.outputTokens > 0]).toEqual([1, true])
    await heed.close()
  })

  it('[R10.2] rejects with the name of the object that is lost with the last commit', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(['{"n":1}']) })
    const heed = new Heed({ agents: { agent }, storage: losing('commitStep', 'after'), logger: silentLogger })
    const structuredOutput = { schema: { type: 'object', properties: { n: { type: 'number' } } } } as const
    const failed = agent.generate('hi', { memory: { thread: 't', resource: 'u' }, structuredOutput })
    await expect(failed).rejects.toMatchObject({ code: 'store_failed', details: { status: 'finished' } })
    await heed.close()
  })

  it('does not close a store that another Heed uses', async () => {
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
