import { describe, expect, it } from 'vitest'
import { CompositeStore, Heed, Agent, InMemoryStore, silentLogger, type Storage } from '../../src/index.ts'
import { LibSQLStore, MemoryLibSQL, NotificationsLibSQL, SchedulesLibSQL, SubscriptionsLibSQL } from '../../src/store/sqlite/index.ts'
import { notificationStoreOf, scheduleStoreOf, subscriptionStoreOf, threadStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { kept } from './kept.ts'
import { newFile } from '../new-file.ts'

const hour = 3_600_000
const retention = { threads: '1h' } as const

const places: Array<{ name: string; storage(): Storage }> = [
  { name: 'in one file', storage: () => kept(new LibSQLStore({ url: `file:${newFile()}`, retention })) },
  { name: 'in memory', storage: () => kept(new InMemoryStore({ retention })) },
  {
    name: 'in databases of their own',
    storage: () => kept(new CompositeStore({
      domains: {
        memory: new MemoryLibSQL({ url: `file:${newFile()}` }), notifications: new NotificationsLibSQL({ url: `file:${newFile()}` }),
        schedules: new SchedulesLibSQL({ url: `file:${newFile()}` }), subscriptions: new SubscriptionsLibSQL({ url: `file:${newFile()}` }),
      },
      retention,
    })),
  },
]

describe.each(places)('records that belong to threads, $name', ({ storage: make }) => {
  async function world() {
    const storage = make()
    const clock = virtualClock()
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Noted.') })
    const heed = kept(new Heed({ agents: { agent }, storage, clock, logger: silentLogger }))
    const memory = await agent.getMemory()
    const inbox = await notificationStoreOf(storage)
    const schedules = await scheduleStoreOf(storage)
    const subscriptions = await subscriptionStoreOf(storage)
    if (!inbox || !schedules || !subscriptions) throw new Error('The storage was to have all of them.')
    const fill = async (threadId: string, resourceId: string, threadIsThere = true) => {
      const now = clock.now()
      if (threadIsThere) await (await threadStoreOf(storage)).createThread({ id: threadId, resourceId, now })
      await inbox.ingest([{ id: 'n', threadId, resourceId, agentId: 'other', source: 's', kind: 'k', summary: 'x', dedupeKey: 'd', now, undecidedUntil: now + 1e12 }])
      await inbox.settle([{ threadId, id: 'n', action: 'summarize', summary: { form: 'window', quietMs: 1e12, maxWaitMs: 1e12 }, now, claimUntil: now }])
      await schedules.putSchedule({
        id: `s-${threadId}`, agentId: 'other', threadId, resourceId, nextAt: now + 1e12, now, overlap: 'allow', missed: 'once', timing: { every: 1e12 },
        signal: { type: 'user', contents: 'x' } as never,
      })
      await subscriptions.putSubscription({ sourceId: 'builds', externalId: 'main', threadId, resourceId, agentId: 'other', metadata: {}, now })
    }
    const held = async (threadId: string, resourceId?: string) => {
      const of = resourceId === undefined ? {} : { resourceId }
      const { notifications } = await inbox.listNotifications({ threadId, ...of, limit: 10 })
      const { subscriptions: heard } = await subscriptions.listSubscriptions({ sourceId: 'builds', threadId, ...of, limit: 10 })
      return notifications.length + (await schedules.listSchedules({ threadId, ...of, limit: 10 })).schedules.length + heard.length
    }
    return { storage, clock, agent, heed, memory, inbox, schedules, fill, held }
  }

  it('[M1.12] are deleted with the thread, also after a deletion that removed only the thread', async () => {
    const { memory, fill, held, inbox } = await world()
    for (const id of ['t', 'stays']) await fill(id, 'u')
    expect(await held('t')).toBe(3)
    expect(await memory.deleteThread('t')).toBe(true)
    expect([await held('t'), await held('stays')]).toEqual([0, 3])
    expect(await inbox.nextDue(['other'])).toBeDefined()
    await fill('cut-short', 'u', false)
    expect(await memory.deleteThread({ threadId: 'cut-short', resourceId: 'u' })).toBe(false)
    expect(await held('cut-short')).toBe(0)
  })

  it('[M1.12] of another resource stay when a thread that does not exist is deleted', async () => {
    const { memory, fill, held } = await world()
    await fill('later', 'u', false)
    await memory.forResource('v').deleteThread('later')
    expect(await held('later')).toBe(3)
  })

  it('[M1.7] belong to the new owner when the thread is transferred', async () => {
    const { memory, fill, held, inbox } = await world()
    await fill('t', 'u')
    await memory.transferThread({ threadId: 't', resourceId: 'v', from: 'u' })
    expect([await held('t', 'u'), await held('t', 'v')]).toEqual([0, 3])
    const again = { id: 'n2', threadId: 't', resourceId: 'v', agentId: 'other', source: 's', kind: 'k', summary: 'y', dedupeKey: 'd', now: 1, undecidedUntil: 1e15 }
    expect((await inbox.ingest([again]))[0]?.outcome).toBe('counted')
  })

  it('[M1.13] are pruned with the threads whose retention ended', async () => {
    const { memory, clock, heed, fill, held } = await world()
    for (const id of ['t', 'u']) await fill(id, 'u')
    expect((await heed.tick()).pruned).toBe(0)
    await clock.advance(1.1 * hour)
    await soon(async () => {
      await clock.advance(10_000)
      return (await memory.getThreadById({ threadId: 't' })) ?? (await held('t')) + (await held('u'))
    }).toBe(0)
  })

  it('[M1.7] are hidden from subscribers of the former owner', async () => {
    const { memory, agent, fill } = await world()
    await fill('t', 'u')
    const watch = await agent.subscribeToThread({ threadId: 't', resourceId: 'u' })
    const next = watch.stream[Symbol.asyncIterator]().next()
    await memory.transferThread({ threadId: 't', resourceId: 'v' })
    await expect(next).rejects.toMatchObject({ code: 'thread_forbidden' })
    watch.unsubscribe()
  })
})

describe('retention', () => {
  it('[M1.13] are pruned from where the last process stopped, and pruning rests at the end', async () => {
    const file = newFile()
    const now = 1_700_000_000_000
    const first = kept(new LibSQLStore({ url: `file:${file}` }))
    for (let index = 0; index < 120; index++) await first.createThread({ id: `t${index}`, resourceId: 'u', now: index < 60 ? now - 10 : now })
    const policy = { threadsBefore: now, now, every: 1_000, limit: 20 }
    expect((await first.pruneDue(policy))?.threadIds).toHaveLength(20)
    const second = kept(new LibSQLStore({ url: `file:${file}` }))
    const sizes: number[] = []
    for (let pruned = await second.pruneDue(policy); pruned; pruned = await second.pruneDue(policy)) sizes.push(pruned.threadIds.length)
    expect(sizes.slice(0, 2)).toEqual([20, 20])
    expect(sizes.slice(2).every((size) => size === 0)).toBe(true)
    expect(await first.pruneDue({ ...policy, now: now + 999 })).toBeNull()
    expect(await first.pruneDue({ ...policy, now: now + 1_000 })).not.toBeNull()
    // A clock that was set back delays nothing.
    expect(await first.pruneDue({ ...policy, now: now - 5_000 })).not.toBeNull()
  })
})
