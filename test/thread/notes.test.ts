import { describe, expect, it } from 'vitest'
import { Agent, type Chunk, type ThreadSnapshot } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from './places.ts'
import { gate, idle, isType, readUntil, types, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const note = { ...thread, ifActive: { behavior: 'persist' } } as const
const saidIn = (chunk: Chunk) => (chunk as { data: { contents?: unknown } }).data.contents

describe.each(placeKinds())('a signal that is persisted while a run is active, $name', ({ make }) => {
  it('[W4.1] is published at once, in order, and does not enter the run', async () => {
    const hold = gate()
    const model = scriptedModel([{ text: ['One ', 'two.'], gate: { parts: 3, until: hold.promise } }, 'Next.'])
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const reader = (await agent.subscribeToThread(thread)).stream[Symbol.asyncIterator]()
    const { runId } = await agent.sendMessage('Go.', thread).outcome
    await readUntil(reader, isType('text-delta'))
    const notes = ['a', 'b', 'c'].map((text) => agent.sendMessage(text, note))
    expect((await Promise.all(notes.map(({ outcome }) => outcome))).map(({ action }) => action)).toEqual(['persisted', 'persisted', 'persisted'])
    const shown: Chunk[] = []
    while (shown.length < 3) shown.push(...(await readUntil(reader, isType('data-user-message'))).filter(isType('data-user-message')))
    expect(shown.map(saidIn)).toEqual(['a', 'b', 'c'])
    expect(shown.every((chunk) => chunk.runId !== runId)).toBe(true)

    hold.open()
    const rest = await readUntil(reader, isType('finish'))
    expect(types(rest)).not.toContain('data-user-message')
    await idle(agent, thread)
    await agent.sendMessage('And?', thread).outcome
    await idle(agent, thread)
    expect(userTexts(model.calls[0])).toEqual(['Go.'])
    expect(userTexts(model.calls[1])).toEqual(['Go.', 'a', 'b', 'c', 'And?'])
  })

  it('[W4.1] is in later snapshots, in this step and in the next', async () => {
    const holds = [gate(), gate()]
    const model = scriptedModel(({ index }) => ({ text: ['One ', 'two.'], gate: { parts: 3, until: holds[index]?.promise ?? Promise.resolve() } }))
    const agent = new Agent({ id: 'guide', model })
    openHeed({ agent }, make().store())
    const reader = (await agent.subscribeToThread(thread)).stream[Symbol.asyncIterator]()
    agent.sendMessage('Go.', thread)
    await readUntil(reader, isType('text-delta'))
    await agent.sendMessage('note', note).outcome
    const messagesSeen = async () => {
      const watcher = await agent.subscribeToThread({ ...thread, snapshot: true })
      const [first] = await readUntil(watcher.stream, () => true)
      watcher.unsubscribe()
      const { messages } = (first as { data: ThreadSnapshot }).data
      return messages.map(({ content }) => content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''))
    }
    expect(await messagesSeen()).toContain('note')
    await agent.sendMessage('More.', thread).stored
    holds[0]?.open()
    await readUntil(reader, isType('step-start'))
    await readUntil(reader, isType('text-delta'))
    expect(await messagesSeen()).toContain('note')
    holds[1]?.open()
    await idle(agent, thread)
  })
})
