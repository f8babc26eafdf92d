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

  it.each<[field: string, memory: object]>([
    ['memory.thread.title', { thread: { id: 't', title: 'Trip' } }],
    ['memory.thread.metadata', { thread: { id: 't', metadata: { a: 1 } } }],
    ['memory.options.workingMemory', { options: { workingMemory: { enabled: true } } }],
    ['memory.options.semanticRecall', { options: { semanticRecall: { topK: 1 } } }],
    ['memory.options.generateTitle', { options: { generateTitle: true } }],
  ])('[M1.10] rejects what it does not do: %s', async (field, { options, ...memory }: { options?: object }) => {
    const model = scriptedModel(() => 'Fine.')
    const agent = new Agent({ id: 'a', model, memory: new Memory() })
    kept(new Heed({ agents: { agent }, storage: store(), logger: silentLogger }))
    const given = { thread: 't', resource: 'u', ...memory, options: { ...options, save: false } }
    const refused = { code: 'invalid_argument', details: { field }, message: expect.stringContaining('has no effect') as string }
    await expect(agent.generate('Hi.', { memory: given })).rejects.toMatchObject(refused)
    await expect(agent.stream('Hi.', { memory: given })).rejects.toMatchObject(refused)
    expect(model.callCount).toBe(0)
    const off = { workingMemory: { enabled: false }, semanticRecall: false, generateTitle: false, readOnly: true, save: false }
    expect((await agent.generate('Hi.', { memory: { thread: 't', resource: 'u', options: off } })).text).toBe('Fine.')
  })

  it('is an option of the call, and rejected elsewhere by name', async () => {
    expect(() => new Memory({ options: { save: false } })).toThrow(expect.objectContaining({ code: 'unsupported_option', details: { option: 'save' } }))
    expect(() => new Memory({ save: 'no' as never })).toThrow(expect.objectContaining({ details: { option: 'save' } }))
  })
})
