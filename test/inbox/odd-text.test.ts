import { describe, expect, it } from 'vitest'
import type { HeedError } from '../../src/index.ts'
import { scheduleStoreOf } from '../../src/store/contract/storage.ts'
import { placeKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'
import { ci, openWorld, thread } from './world.ts'

const nul = 'before\u0000after'
const half = 'cut \uD83D'
const odd = `${nul} ${half} end`
/** What can't be read is read as this sign. */
const shown = 'before\uFFFDafter cut \uFFFD end'

describe.each(placeKinds())('text that is not all readable, $name', ({ make, storesNul = true }) => {
  it('[N1.12] what a notification says is stored whole, and the model reads all of it that can be read', async () => {
    const { agent, calls, read, inbox } = await openWorld(make)
    // PostgreSQL rejects NUL outside of JSON ([Q1.4]).
    const summary = storesNul ? nul : 'before, after'
    const given = { summary, attributes: { title: odd }, payload: { text: odd, list: [odd] }, metadata: { [nul]: odd } }
    const { record } = await agent.sendNotificationSignal({ ...ci, ...given }, thread)
    await soon(calls).toBe(1)
    expect(record).toMatchObject(given)
    expect(await inbox.getNotification({ ...thread, id: record.id })).toMatchObject(given)
    expect(read().join()).toContain(`${summary}</notification>`)
    expect(read().join()).toContain(`title="${shown}"`)
  })

  it('[N1.12] half of a surrogate pair in a summary is the replacement character, at once and when it is stored', async () => {
    const { agent, calls, read, list } = await openWorld(make)
    const { record } = await agent.sendNotificationSignal({ ...ci, summary: half }, thread)
    expect(record.summary).toBe('cut \uFFFD')
    expect((await list())[0]?.summary).toBe('cut \uFFFD')
    await soon(calls).toBe(1)
    expect(read().join()).toContain('cut \uFFFD</notification>')
  })

  it('[N1.12] contents, attributes and metadata of a signal are stored whole, of a message and of a schedule too', async () => {
    const { agent, calls, read, clock, storage } = await openWorld(make)
    await agent.sendSignal({ type: 'notification', id: 'signal', contents: odd, attributes: { title: odd }, metadata: { odd } }, thread).outcome
    await agent.sendMessage({ id: 'message', contents: [{ type: 'text', text: odd }] }, thread).outcome
    await agent.schedule({ ...thread, id: 's', signal: { type: 'notification', contents: odd, attributes: { title: odd } }, at: new Date(clock.now() + 60_000) })
    expect(await (await scheduleStoreOf(storage))?.getSchedule({ id: 's' })).toMatchObject({ signal: { contents: odd, attributes: { title: odd } } })
    await idle(agent, thread)
    const before = calls()
    await clock.advance(60_000)
    await soon(calls).toBe(before + 1)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    const said = messages.filter(({ role }) => role !== 'assistant')
    expect(said.map(({ content }) => content.parts.find(({ type }) => type === 'text'))).toEqual(Array.from({ length: 3 }, () => expect.objectContaining({ text: odd }) as object))
    for (const id of ['signal', 'message']) expect((await storage.getSignal(thread, id))?.rows[0]?.content.parts).toMatchObject([{ text: odd }])
    expect(JSON.stringify(said[0]?.content.metadata)).toContain(JSON.stringify(odd).slice(1, -1))
    expect(read().filter((text) => text.includes('end'))).toHaveLength(3)
  })

  it.each([['NUL', nul], ['half of a pair', half]])('[N1.12] names with %s are refused by name, with nothing written', async (_, name) => {
    const { agent, list, storage, clock } = await openWorld(make)
    const field = async (work: () => unknown) => {
      try {
        await work()
      } catch (error) {
        return (error as HeedError).details?.field
      }
    }
    for (const key of ['id', 'source', 'kind', 'dedupeKey', 'coalesceKey']) expect(await field(() => agent.sendNotificationSignal({ ...ci, [key]: name }, thread))).toBe(key)
    const message = { ...thread, id: 's', message: 'x', at: new Date(clock.now() + 1_000) }
    for (const key of ['threadId', 'resourceId']) {
      const target = { ...thread, [key]: name }
      expect(await field(() => agent.sendNotificationSignal(ci, target))).toBe(key)
      expect(await field(() => agent.sendMessage('Hello.', target))).toBe(key)
      expect(await field(() => agent.schedule({ ...message, [key]: name }))).toBe(key)
      expect(await field(async () => (await agent.getMemory()).createThread(target))).toBe(key)
    }
    expect(await field(() => agent.schedule({ ...message, id: name }))).toBe('id')
    expect(await field(() => agent.sendMessage({ id: name, contents: 'Hello.' }, thread))).toBe('id')
    expect(await field(() => agent.generate('Hello.', { memory: { thread: name, resource: 'u' } }))).toBe('memory.thread')
    expect(await field(() => agent.generate('Hello.', { memory: { thread: 't', resource: name } }))).toBe('memory.resource')
    expect(await list()).toEqual([])
    expect((await storage.listThreads({ limit: 5, orderBy: { field: 'createdAt', direction: 'ASC' } })).threads).toEqual([])
  })
})
