import { describe, expect, it } from 'vitest'
import { Agent, Memory, type Processor, type SemanticRecallOptions } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }
const quiet = { ifIdle: { behavior: 'persist' } } as const
const semanticRecall: SemanticRecallOptions = { scope: 'resource', topK: 3, messageRange: 0 }

/** Notes what it is shown; refuses what is evil, and hides what is secret. */
function guard(seen: string[][]): Processor {
  return {
    id: 'guard',
    processInput({ messages, source, abort }) {
      if (source === 'input') seen.push(messages.map(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')))
      if (JSON.stringify(messages).includes('EVIL')) abort('no')
      return JSON.parse(JSON.stringify(messages).replaceAll('secret', '***'), (key, value: unknown) => (key === 'createdAt' ? new Date(value as string) : value))
    },
  }
}

describe.each(placeKinds())('what was stored and is not in the window, $name', ({ make }) => {
  function open(options: ConstructorParameters<typeof Memory>[0], guarded = true) {
    const seen: string[][] = []
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'a', model, memory: new Memory({ semanticRecall: false, ...options }), inputProcessors: guarded ? [guard(seen)] : [] })
    openHeed({ agent }, make().store())
    return { agent, model, seen, read: (call: number) => JSON.stringify(model.calls[call]?.prompt) }
  }
  const state = (agent: Agent, contents: string) => agent.sendStateSignal({ id: 'lane', cacheKey: contents, contents }, { ...thread, ...quiet })
  const note = async (agent: Agent, contents: string, threadId = 't') => await agent.sendMessage(contents, { threadId, resourceId: 'u', ...quiet }).persisted

  it('[G2.11] is passed to processInput once, before a lane repeats it', async () => {
    const { agent, seen, read } = open({ lastMessages: false })
    await state(agent, 'The tab is secret.')
    await agent.generate('Hi.', { memory })
    expect(seen).toEqual([['The tab is secret.'], ['Hi.']])
    expect(read(0)).toContain('The tab is ***.')
    await agent.generate('Again.', { memory })
    expect(seen.slice(2)).toEqual([['Again.']])
    expect(read(1)).toContain('The tab is ***.')
    await state(agent, 'EVIL')
    expect((await agent.generate('Now?', { memory })).tripwire).toMatchObject({ reason: 'no', processorId: 'guard' })
    expect((await agent.getLane({ ...thread, id: 'lane' }))?.snapshot).toMatchObject({ signal: { contents: 'The tab is ***.' } })
    expect((await agent.generate('And now?', { memory })).text).toBe('Done.')
    expect(read(2)).toContain('The tab is ***.')
    expect(read(2)).not.toContain('EVIL')
  })

  it('[G2.11] is seen by processInput before it is recalled, however much of it there is', async () => {
    const { agent, seen, read } = open({ window: { low: 1, high: 1 }, semanticRecall })
    await note(agent, 'The password is secret swordfish.')
    for (let index = 0; index < 120; index++) await note(agent, `Note ${index}.`)
    await agent.generate('What is the password?', { memory })
    expect(seen.flat()).toEqual(['The password is secret swordfish.', ...Array.from({ length: 120 }, (_, index) => `Note ${index}.`), 'What is the password?'])
    expect(read(0)).toContain('The password is *** swordfish.')
    const before = seen.length
    await agent.generate('Sure?', { memory })
    expect(seen.slice(before)).toEqual([['Sure?']])
    for (const words of ['The keyword is EVIL.', 'One.', 'Two.']) await note(agent, words)
    expect((await agent.generate('What is the keyword?', { memory })).tripwire).toBeDefined()
    await agent.generate('What is the keyword?', { memory })
    expect(read(2)).not.toContain('EVIL')
  })

  it('[G2.11] is recalled by other threads only when it was seen on its own', async () => {
    const { agent, seen, read } = open({ semanticRecall })
    await note(agent, 'The password is secret swordfish.', 'elsewhere')
    await agent.generate('What is the password?', { memory })
    expect(read(0)).not.toContain('swordfish')
    expect(seen).toEqual([['What is the password?']])
    await agent.generate('Hi.', { memory: { thread: 'elsewhere', resource: 'u' } })
    expect(seen.slice(1)).toEqual([['The password is secret swordfish.'], ['Hi.']])
    await agent.generate('What was the password?', { memory: { thread: 'third', resource: 'u' } })
    expect(read(2)).toContain('The password is *** swordfish.')
  })

  it('is recalled at once where no processor looks at input', async () => {
    const { agent, read } = open({ semanticRecall }, false)
    await note(agent, 'The password is swordfish.', 'elsewhere')
    await agent.generate('What is the password?', { memory })
    expect(read(0)).toContain('swordfish')
  })

  it('is recalled where a program wrote it itself', async () => {
    const { agent, read } = open({ semanticRecall })
    const kept = await agent.getMemory()
    await kept.createThread({ threadId: 'old', resourceId: 'u' })
    await kept.saveMessages({ messages: [{ id: 'm', role: 'user', createdAt: new Date(0), threadId: 'old', resourceId: 'u', content: { format: 2, parts: [{ type: 'text', text: 'The password is swordfish.' }] } }] })
    await agent.generate('What is the password?', { memory })
    expect(read(0)).toContain('swordfish')
  })
})
