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

  it('[W1.1] is not echoed to a subscriber that returns from a snapshot that contained it', async () => {
    const hold = gate()
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['One ', 'two.'], gate: { parts: 3, until: hold.promise } }]) })
    openHeed({ agent }, make().store())
    const permanent = await agent.subscribeToThread(thread)
    const reader = permanent.stream[Symbol.asyncIterator]()
    agent.sendMessage('Go.', thread)
    const before = await readUntil(reader, isType('text-delta'))
    await agent.sendMessage({ contents: 'note', id: 'note' }, note).outcome
    const watcher = await agent.subscribeToThread({ ...thread, snapshot: true })
    const read = await readUntil(watcher.stream, isType('text-delta'))
    watcher.unsubscribe()
    for (const { cursor } of [read[0], read.at(-1)] as Chunk[]) {
      const returned = await agent.subscribeToThread({ ...thread, after: cursor! })
      const [first] = await readUntil(returned.stream, () => true)
      expect(first).toMatchObject({ type: 'data-thread-snapshot', data: { messages: [{ id: 'note' }] } })
      returned.unsubscribe()
    }
    // A cursor from before the snapshot is of a subscriber that has not read it, and one that has read the echo misses nothing.
    const echo = (await readUntil(reader, isType('data-user-message'))).at(-1)
    expect(echo).toMatchObject({ data: { id: 'note' } })
    hold.open()
    const rest = await readUntil(reader, isType('finish'))
    const late = await agent.subscribeToThread({ ...thread, after: echo!.cursor! })
    expect(await readUntil(late.stream, isType('finish'))).toEqual(rest)
    expect(types(before)[0]).toBe('start')
    await idle(agent, thread)
  })
})
