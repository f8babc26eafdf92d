import { describe, expect, it } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { fileKind, openHeed } from '../thread/places.ts'

const place = fileKind()

function open() {
  const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Yes.') })
  openHeed({ agent }, place.make().store())
  return { agent, thread: async () => (await agent.getMemory()).getThreadById({ threadId: 't' }) }
}

describe('[M1.21] title and metadata of a call', () => {
  it.each(['generate', 'stream'] as const)('of %s: of a thread that exists the title is set and the metadata is merged', async (method) => {
    const { agent, thread } = open()
    const ask = async (of: object) => {
      const answer = await agent[method]('Go.', { memory: { thread: { id: 't', ...of }, resource: 'u' } })
      await answer.text
    }
    await ask({ title: 'First', metadata: { category: 'hello', stars: 1 } })
    expect(await thread()).toMatchObject({ title: 'First', metadata: { category: 'hello', stars: 1 } })
    await ask({ metadata: { stars: 2, status: 'open' } })
    expect(await thread()).toMatchObject({ title: 'First', metadata: { category: 'hello', stars: 2, status: 'open' } })
    await ask({ title: 'Second', metadata: { category: null } })
    const after = await thread()
    expect(after).toMatchObject({ title: 'Second', metadata: { stars: 2, status: 'open' } })
    expect(after?.metadata).not.toHaveProperty('category')
    await ask({})
    expect(await thread()).toMatchObject({ title: 'Second', metadata: { stars: 2, status: 'open' } })
  })

  it('are not those of a thread of another resource', async () => {
    const { agent, thread } = open()
    await agent.generate('Go.', { memory: { thread: { id: 't', title: 'Mine' }, resource: 'u' } })
    await expect(agent.generate('Go.', { memory: { thread: { id: 't', title: 'Theirs' }, resource: 'v' } })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect(await thread()).toMatchObject({ title: 'Mine' })
  })
})

describe('[M1.24] createThread of a thread that exists', () => {
  it('sets the title, merges the metadata and sets working memory, also over HTTP', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Yes.'), memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
    const { client } = await served({ agent }, { storage: place.make().store() })
    const memory = await agent.getMemory()
    await memory.createThread({ threadId: 't', resourceId: 'u', title: 'First', metadata: { category: 'hello', stars: 1 } })
    const again = await memory.createThread({ threadId: 't', resourceId: 'u', title: 'Second', metadata: { stars: 2, category: null as never, workingMemory: '# Ada' } })
    expect(again).toMatchObject({ id: 't', title: 'Second', metadata: { stars: 2 } })
    expect(again.metadata).not.toHaveProperty('category')
    expect(await memory.getWorkingMemory({ threadId: 't' })).toBe('# Ada')
    const overHTTP = await client.memory({ agentId: 'a', resourceId: 'u' }).createThread({ threadId: 't', metadata: { stars: 3 } })
    expect(overHTTP).toMatchObject({ title: 'Second', metadata: { stars: 3 } })
    await expect(memory.createThread({ threadId: 't', resourceId: 'v', title: 'Theirs' })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('changes nothing where it declares what is stored', async () => {
    const { agent } = open()
    const memory = await agent.getMemory()
    const declared = { threadId: 't', resourceId: 'u', title: 'First', metadata: { tags: ['a', { b: 1 }], gone: null } }
    const first = await memory.createThread(declared)
    await memory.updateThread({ id: 't', metadata: { later: true } })
    const { updatedAt } = (await memory.getThreadById({ threadId: 't' })) ?? first
    await expect.poll(() => Date.now()).toBeGreaterThan(updatedAt.getTime())
    for (const again of [declared, { threadId: 't', resourceId: 'u' }]) {
      expect(await memory.createThread(again)).toMatchObject({ title: 'First', metadata: { later: true }, updatedAt })
    }
  })
})
