import { describe, expect, it } from 'vitest'
import { Agent, Heed, Memory, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { kept, stores } from './kept.ts'

describe.each(stores)('a call that is not saved, $name', ({ store }) => {
  it('[M1.10] reads the history and stores nothing', async () => {
    const model = scriptedModel((call) => `${call.prompt.length}`)
    const agent = new Agent({ id: 'a', model })
    const place = store()
    kept(new Heed({ agents: { agent }, storage: place, logger: silentLogger }))
    const chat = { thread: 't', resource: 'u' }
    await agent.generate('One', { memory: chat })
    const everything = async () => JSON.stringify([await place.getThread({ threadId: 't' }), await place.listRows({ threadId: 't' }, { limit: 100, context: true }), await place.listSignals({ threadId: 't' })])
    const before = await everything()
    expect((await agent.generate('Two', { memory: { ...chat, options: { save: false } } })).text).toBe('3')
    const stream = await agent.stream('Two', { memory: { ...chat, options: { save: false, lastMessages: false } } })
    expect((await stream.text)).toBe('1')
    expect(await everything()).toBe(before)
    await expect(agent.generate('x', { memory: { ...chat, resource: 'v', options: { save: false } } })).rejects.toMatchObject({ code: 'thread_forbidden' })
    await agent.generate('New', { memory: { thread: 'never', resource: 'u', options: { save: false } } })
    expect(await place.getThread({ threadId: 'never' })).toBeNull()
  })

  it('is an option of the call, and rejected elsewhere by name', async () => {
    expect(() => new Memory({ options: { save: false } })).toThrow(expect.objectContaining({ code: 'unsupported_option', details: { option: 'save' } }))
    expect(() => new Memory({ save: 'no' as never })).toThrow(expect.objectContaining({ details: { option: 'save' } }))
  })
})
