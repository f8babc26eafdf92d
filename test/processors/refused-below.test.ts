import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type Logger, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { gate, idle, soon } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const call = { toolName: 'agent-sub', toolCallId: 'c1', input: { prompt: 'Find the whale song.' } }
const hearing = (logged: string[]): Logger => {
  const log = (message: string) => void logged.push(message)
  return { debug() {}, info() {}, warn: log, error: log }
}

describe.each(placeKinds())('what a refused run asked another agent, $name', ({ make }) => {
  it('[R7.8] goes with it, and is not recalled elsewhere', async () => {
    const guard: Processor = { id: 'guard', processOutputResult: ({ result, abort }) => (result.text.includes('BAD') ? abort('refused') : undefined) }
    const sub = new Agent({ id: 'sub', description: 'Knows songs.', model: scriptedModel(() => 'The whale song is SECRET.') })
    const model = scriptedModel(({ prompt }) => {
      if (!JSON.stringify(prompt).includes('Go.')) return 'Fine.'
      return prompt.some(({ role }) => role === 'tool') ? 'BAD' : { toolCalls: [call] }
    })
    const agent = new Agent({ id: 'a', model, agents: { sub }, outputProcessors: [guard], memory: new Memory({ lastMessages: 2 }) })
    openHeed({ agent, sub }, make().store())
    const memory = await agent.getMemory()
    // The index is made of what is there at its first use, and follows what changes after that.
    await memory.recall({ ...thread, vectorSearchString: 'whale song' }).catch(() => undefined)
    expect((await agent.generate('Go.', { memory: { thread: 't', resource: 'u' } })).finishReason).toBe('tripwire')
    expect(await memory.getThreadById({ threadId: 'child:t/c1' })).toBeNull()
    await agent.generate('What about the whale song?', { memory: { thread: 'other', resource: 'u' } })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('SECRET')
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('Find the whale')
  })

  it('[R7.8] ends what still runs there without an error, and leaves nothing stored', async () => {
    const logged: string[] = []
    const atWork = gate()
    const guard: Processor = { id: 'guard', processToolResult: ({ toolName, abort }) => (toolName === 'beside' ? abort('refused') : undefined) }
    const sub = new Agent({ id: 'sub', description: 'Thinks long.', model: scriptedModel(() => (atWork.open(), { text: 'Hm', hang: true })) })
    const beside = createTool({ id: 'beside', execute: async () => (await atWork.promise, 'beside') })
    const model = scriptedModel([{ toolCalls: [call, { toolName: 'beside', toolCallId: 'c2', input: {} }] }])
    const agent = new Agent({ id: 'a', model, agents: { sub }, tools: { beside }, outputProcessors: [guard] })
    openHeed({ agent, sub }, make().store(), { logger: hearing(logged) })
    expect(await agent.generate('Go.', { memory: { thread: 't', resource: 'u' } })).toMatchObject({ tripwire: { reason: 'refused', processorId: 'guard' } })
    await idle(agent, thread)
    const memory = await agent.getMemory()
    await soon(() => sub.activeRun({ ...thread, threadId: 'child:t/c1' })).toBeNull()
    expect((await memory.listThreads({ children: true, filter: { resourceId: 'u' } })).threads.map(({ id }) => id)).toEqual(['t'])
    expect(logged).toEqual([])
  })
})
