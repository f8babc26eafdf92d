import { describe, expect, it } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

describe.each(placeKinds())('lists of threads and messages, $name', ({ make }) => {
  it('[M1.17] threads of one millisecond are in the order in which they were created, in both directions and page by page', async () => {
    const clock = virtualClock()
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok'), memory: new Memory() })
    openHeed({ agent }, make({ clock }).store(), { clock })
    const memory = await agent.getMemory()
    const ids = ['z', 'a', 'm', 'b', 'y', 'c']
    for (const threadId of ids) await memory.createThread({ threadId, resourceId: 'ada', metadata: { kind: 'x' } })
    for (const metadata of [undefined, { kind: 'x' }]) {
      for (const direction of ['ASC', 'DESC'] as const) {
        for (const field of ['createdAt', 'updatedAt'] as const) {
          const listed: string[] = []
          for (let cursor: string | undefined; ;) {
            const page = await memory.listThreads({ filter: { resourceId: 'ada', ...(metadata && { metadata }) }, orderBy: { field, direction }, perPage: 2, ...(cursor && { cursor }) })
            listed.push(...page.threads.map(({ id }) => id))
            cursor = page.nextCursor
            if (cursor === undefined) break
          }
          expect(listed).toEqual(direction === 'ASC' ? ids : ids.toReversed())
        }
      }
    }
    const { nextCursor = '' } = await memory.listThreads({ filter: { resourceId: 'ada' }, perPage: 2 })
    await memory.deleteThread('y')
    expect((await memory.listThreads({ filter: { resourceId: 'ada' }, cursor: nextCursor })).threads.map(({ id }) => id)).toEqual(expect.arrayContaining(['b', 'm', 'a', 'z']))
  })

  it('[M1.18] deleting messages changes updatedAt of their thread, and deleting none does not', async () => {
    const clock = virtualClock()
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'ok'), memory: new Memory() })
    openHeed({ agent }, make({ clock }).store(), { clock })
    const memory = await agent.getMemory()
    await memory.createThread({ threadId: 't', resourceId: 'ada' })
    await memory.saveMessages({ threadId: 't', messages: ['a', 'b', 'c'].map((id) => ({ id, role: 'user', content: id })) })
    const updated = async () => (await memory.getThreadById({ threadId: 't' }))?.updatedAt.getTime() ?? 0
    let before = await updated()
    for (const act of [() => memory.deleteMessages(['a']), () => memory.deleteMessages({ threadId: 't' })]) {
      await clock.advance(1_000)
      await act()
      expect(await updated()).toBeGreaterThan(before)
      before = await updated()
      await clock.advance(1_000)
      await memory.deleteMessages({ threadId: 't', messageIds: ['unknown'] })
      expect(await updated()).toBe(before)
    }
  })

  it('[M1.19] saveMessages stores a message in the thread that it names, whatever the form of its content', async () => {
    const memory = new Memory({ storage: make().store() })
    for (const threadId of ['one', 'two']) await memory.createThread({ threadId, resourceId: 'ada' })
    await memory.saveMessages({ threadId: 'one', messages: [
      { id: 'text', role: 'user', content: 'Hi.', threadId: 'two' },
      { id: 'parts', role: 'user', content: [{ type: 'text', text: 'Hi.' }], threadId: 'two', resourceId: 'ada' },
      { id: 'ui', role: 'user', parts: [{ type: 'text', text: 'Hi.' }], threadId: 'two' },
      { id: 'stored', role: 'user', createdAt: new Date(), threadId: 'two', content: { format: 2, parts: [{ type: 'text', text: 'Hi.' }] } },
      { id: 'neither', role: 'user', content: 'Hi.' },
    ] })
    const ids = async (threadId: string) => (await memory.recall({ threadId })).messages.map(({ id }) => id)
    expect([await ids('one'), await ids('two')]).toEqual([['neither'], ['text', 'parts', 'ui', 'stored']])
  })

  it('[M1.20] the messages of a thread that does not exist yet are an empty list: in the process, over HTTP and through the client', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'ok'), memory: new Memory() })
    const { client, ask } = await served({ agent }, { storage: make().store() })
    expect((await (await agent.getMemory()).recall({ threadId: 'trip' })).messages).toEqual([])
    expect(await client.memory({ agentId: 'guide' }).listMessages({ threadId: 'trip' })).toMatchObject({ messages: [], uiMessages: [], hasMore: false, total: 0 })
    expect((await ask('/memory/threads/trip/messages?agentId=guide')).status).toBe(200)
  })

  it('[K2.17] a search within a range of dates returns messages of that range alone', async () => {
    const memory = new Memory({ storage: make().store() })
    await memory.createThread({ threadId: 't', resourceId: 'ada' })
    const day = (at: number) => new Date(Date.UTC(2026, 0, at))
    await memory.saveMessages({ threadId: 't', messages: [1, 2, 3, 4, 5].map((at) => ({ id: `m-${at}`, role: 'user', createdAt: day(at), content: { format: 2, parts: [{ type: 'text', text: `The gazelle ate ${at} apples.` }] } })) })
    const found = async (dateRange: object) => (await memory.recall({ threadId: 't', vectorSearchString: 'gazelle apples', filter: { dateRange } }))
    expect((await found({ start: day(2), end: day(3) })).messages.map(({ id }) => id)).toEqual(['m-2', 'm-3'])
    expect((await found({ start: day(2), startExclusive: true, end: day(4), endExclusive: true })).messages.map(({ id }) => id)).toEqual(['m-3'])
    expect((await found({ start: day(5) })).hits?.map(({ messageId }) => messageId)).toEqual(['m-5'])
    expect((await found({ start: day(9) })).messages).toEqual([])
  })

  it('[P1.6] a window of exactly N has N messages before the question and begins with one of a user', async () => {
    const model = scriptedModel(({ index }) => `Answer ${index}.`)
    const agent = new Agent({ id: 'a', model, memory: new Memory({ window: { low: 4, high: 4 }, semanticRecall: false }) })
    openHeed({ agent }, make().store())
    for (let at = 0; at < 5; at += 1) await agent.generate(`Question ${at}?`, { memory: { thread: 't', resource: 'ada' } })
    expect(texts(model.calls[4]?.prompt ?? [])).toEqual(['user: Question 2?', 'assistant: Answer 2.', 'user: Question 3?', 'assistant: Answer 3.', 'user: Question 4?'])
    await agent.generate('Question 5?', { memory: { thread: 't', resource: 'ada', options: { window: { low: 3, high: 3 } } } })
    expect(texts(model.calls[5]?.prompt ?? [])[0]).toBe('user: Question 3?')
    const { parts } = await agent.explainPrompt('Question 6?', { memory: { thread: 't', resource: 'ada' } })
    expect(parts.map(({ preview }) => preview)).toEqual(['Question 4?', 'Answer 4.', 'Question 5?', 'Answer 5.', 'Question 6?'])
  })
})
