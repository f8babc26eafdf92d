import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const thread = { threadId: 't', resourceId: 'u' }
const state = (key: string) => ({ id: 'editor', cacheKey: key, contents: `File ${key} is open.`, value: { file: key } })

describe('state signals', () => {
  function open() {
    const model = scriptedModel(() => 'seen')
    const agent = new Agent({ id: 'a', model })
    return { model, agent, heed: new Heed({ agents: { agent }, storage: new InMemoryStore() }) }
  }

  it('wake an idle thread, and the model reads them in their tag', async () => {
    const { model, agent, heed } = open()
    const receipt = await agent.sendStateSignal({ ...state('a.ts'), attributes: { lines: 3 } }, thread)
    expect(receipt).toMatchObject({ accepted: true, skipped: false, signal: { type: 'state', metadata: { state: { id: 'editor', mode: 'snapshot', cacheKey: 'a.ts', version: 1, threadId: 't' }, value: { file: 'a.ts' } } } })
    await expect.poll(() => model.callCount).toBe(1)
    expect(model.calls[0]?.prompt.at(-1)).toMatchObject({ role: 'user', content: [{ type: 'text', text: '<state lines="3">File a.ts is open.</state>' }] })
    await heed.close()
  })

  it('[L1.1] that are unchanged are skipped, also if concurrent; a changed one has the next version', async () => {
    const { agent, heed } = open()
    const quiet = { ...thread, ifIdle: { behavior: 'persist' } } as const
    const answers = await Promise.all(Array.from({ length: 20 }, () => agent.sendStateSignal(state('a.ts'), quiet)))
    expect(answers.filter((answer) => answer.skipped)).toHaveLength(19)
    expect(answers.find((answer) => answer.skipped)).toEqual({ accepted: true, skipped: true, reason: 'unchanged' })
    const next = await agent.sendStateSignal({ ...state('b.ts'), mode: 'delta', delta: { to: 'b.ts' } }, quiet)
    expect(next).toMatchObject({ skipped: false, signal: { metadata: { state: { mode: 'delta', version: 2 }, delta: { to: 'b.ts' } } } })
    const lanes = await Promise.all(Array.from({ length: 20 }, (__, index) => agent.sendStateSignal({ ...state('x'), id: `lane-${index}` }, quiet)))
    expect(lanes.every((lane) => !lane.skipped && lane.signal.metadata !== undefined)).toBe(true)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages).toHaveLength(22)
    await heed.close()
  })

  it('[L1.1] that were discarded are stored the next time', async () => {
    const { agent, heed } = open()
    await agent.sendStateSignal(state('a.ts'), { ...thread, ifIdle: { behavior: 'discard' } })
    expect(await agent.sendStateSignal(state('a.ts'), { ...thread, ifIdle: { behavior: 'persist' } })).toMatchObject({ skipped: false })
    await heed.close()
  })

  it('[A3.3] without a lane or a cacheKey are rejected', async () => {
    const { agent, heed } = open()
    await expect(agent.sendStateSignal({ ...state('a.ts'), id: '' }, thread)).rejects.toMatchObject({ code: 'invalid_signal', details: { field: 'id' } })
    await expect(agent.sendStateSignal({ ...state('') }, thread)).rejects.toMatchObject({ details: { field: 'cacheKey' } })
    await heed.close()
  })
})
