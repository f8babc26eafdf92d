import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
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
