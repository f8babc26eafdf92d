import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { placeKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'
import { scheduleStoreOf } from '../../src/store/contract/storage.ts'
import { openWorld, thread, type World } from '../inbox/world.ts'

const minute = 60_000

describe.each(placeKinds())('schedules that fail, $name', ({ make }) => {
  it('[S1.1] one that can\'t be sent is tried again, later each time, says why, and is sent once', async () => {
    const { agent, clock, storage, calls } = await openWorld(make)
    await agent.schedule({ ...thread, id: 'x', message: 'Tick.', every: 60 * minute })
    const accept = storage.accept.bind(storage)
    let tried = 0
    Object.defineProperty(storage, 'accept', { configurable: true, value: () => (tried++, Promise.reject(new Error('disk is full'))) })
    await clock.advance(60 * minute)
    await soon(async () => (await agent.schedules.get({ id: 'x' }))?.lastError).toContain('disk is full')
    Object.defineProperty(storage, 'accept', { configurable: true, value: accept })
    await soon(async () => {
      await clock.advance(1_000)
      return calls()
    }).toBe(1)
    expect(tried).toBeGreaterThan(0)
    await soon(async () => (await agent.schedules.get({ id: 'x' }))?.lastError).toBeUndefined()
  })

  /** A disk that refuses every send until it is mended. */
  function breakDisk({ storage }: World) {
    const accept = storage.accept.bind(storage)
    Object.defineProperty(storage, 'accept', { configurable: true, value: () => Promise.reject(new Error('disk is full')) })
    return { mend: () => void Object.defineProperty(storage, 'accept', { configurable: true, value: accept }) }
  }

  it('[S1.9] it is tried again after 1, 1, 2, 4, … seconds, and given up for the next after an hour', async () => {
    const world = await openWorld(make)
    const { agent, clock, calls, read } = world
    const first = (await agent.schedule({ ...thread, id: 'x', message: 'Tick.', every: 120 * minute })).nextAt?.getTime() ?? 0
    const store = (await scheduleStoreOf(world.storage))!
    const fail = store.failSchedule.bind(store)
    const failures: Array<{ at: number; wait: number }> = []
    store.failSchedule = async (failure) => {
      const written = await fail(failure)
      failures.push({ at: failure.now - first, wait: failure.retryAt - failure.now })
      return written
    }
    const disk = breakDisk(world)
    const get = async () => (await agent.schedules.get({ id: 'x' }))!
    const isGivenUp = async () => (await get()).nextAt?.getTime() !== first
    await clock.advance(first - clock.now())
    for (let count = 1; !(await isGivenUp()); count++) {
      await soon(async () => {
        await clock.advance(0)
        return failures.length >= count || (await isGivenUp())
      }).toBe(true)
      const last = failures[count - 1]
      if (!last) break
      await clock.advance(first + last.at + last.wait - 1 - clock.now())
      expect(failures).toHaveLength(count)
      await clock.advance(1)
    }
    expect(failures.map(({ wait }) => wait / 1_000)).toEqual([1, 1, 2, 4, 8, 16, 32, 64, 128, 256, ...Array<number>(11).fill(300)])
    expect(failures.map(({ at }) => at)).toEqual(failures.map((_, index) => failures.slice(0, index).reduce((sum, { wait }) => sum + wait, 0)))
    expect(clock.now() - first).toBeGreaterThanOrEqual(60 * minute)
    expect(await get()).toMatchObject({ status: 'active', lastError: expect.stringContaining('disk is full') as string, nextAt: new Date(first + 120 * minute) })
    expect((await get()).lastAt).toBeUndefined()
    disk.mend()
    await clock.advance(first + 120 * minute - clock.now())
    await soon(async () => {
      await clock.advance(0)
      return calls()
    }).toBe(1)
    expect(read()).toEqual(['Tick.'])
    await soon(async () => (await get()).lastError).toBeUndefined()
  })

  it('[S1.9] one that is replaced while it fails keeps what it was replaced by', async () => {
    const world = await openWorld(make)
    const { agent, clock, calls, read } = world
    const at = new Date(clock.now() + minute)
    await agent.schedule({ ...thread, id: 'x', message: 'One.', at })
    const disk = breakDisk(world)
    const store = (await scheduleStoreOf(world.storage))!
    const fail = store.failSchedule.bind(store)
    const failed: boolean[] = []
    store.failSchedule = async (failure) => {
      disk.mend()
      if (failed.length === 0) await agent.schedule({ ...thread, id: 'x', message: 'Two.', at })
      failed.push(await fail(failure))
      return failed.at(-1) ?? false
    }
    await clock.advance(minute)
    await soon(async () => {
      await clock.advance(0)
      return calls()
    }).toBe(1)
    expect(read()).toEqual(['Two.'])
    expect(failed).toEqual([false])
    await soon(async () => (await agent.schedules.get({ id: 'x' }))?.status).toBe('done')
    expect((await agent.schedules.get({ id: 'x' }))?.lastError).toBeUndefined()
  })

  it('[S1.9] what its thread refuses is not tried again, and the record says why', async () => {
    const { agent, clock, calls, storage } = await openWorld(make)
    const { nextAt } = await agent.schedule({ ...thread, id: 'x', message: 'Tick.', every: 60 * minute })
    await storage.createThread({ id: thread.threadId, resourceId: 'somebody-else', now: clock.now() })
    await clock.advance(60 * minute)
    await soon(async () => (await agent.schedules.get({ id: 'x' }))?.nextAt?.getTime()).toBe((nextAt?.getTime() ?? 0) + 60 * minute)
    expect(await agent.schedules.get({ id: 'x' })).toMatchObject({ status: 'active', lastError: expect.stringContaining('another resource') as string })
    expect(calls()).toBe(0)
  })

  it('[S1.3] an occurrence that is left out is not one that was sent', async () => {
    const { agent, clock, work, rest } = await openWorld(make)
    await work()
    const { nextAt } = await agent.schedule({ ...thread, id: 'x', message: 'Tick.', every: minute, overlap: 'skip' })
    await clock.advance(minute)
    await soon(async () => (await agent.schedules.get({ id: 'x' }))?.nextAt?.getTime()).toBe((nextAt?.getTime() ?? 0) + minute)
    expect((await agent.schedules.get({ id: 'x' }))?.lastAt).toBeUndefined()
    await rest()
  })

  it('[S1.5] the same id and time with other words is sent', async () => {
    const { agent, clock, read } = await openWorld(make)
    const at = new Date(clock.now() + minute)
    await agent.schedule({ ...thread, id: 'x', message: 'One.', at })
    await clock.advance(minute)
    await soon(() => read().join()).toContain('One.')
    await idle(agent, thread)
    await agent.schedule({ ...thread, id: 'x', message: 'Two.', at })
    await soon(async () => {
      await clock.advance(0)
      return read().join()
    }).toContain('Two.')
  })
})

describe('what a schedule or an inbox can\'t be', () => {
  it('[S1.7] [N1.3] is refused by name', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Ok.') })
    const storage = new InMemoryStore()
    const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
    await expect(agent.schedule({ ...thread, message: 'M.', cron: '2030-01-01T00:00:00' })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'cron' } })
    await expect(agent.schedule({ ...thread, message: 'M.', every: Number.MAX_SAFE_INTEGER })).rejects.toMatchObject({ details: { field: 'every' } })
    await expect(agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x', attributes: '' as never }, thread)).rejects.toMatchObject({ details: { field: 'attributes' } })
    for (const cron of ['0 0 30 2 *', '2030-01-01T00:00:00']) {
      expect(() => new Heed({ agents: {}, storage, notifications: { dispatch: { enabled: true, cron } } })).toThrow(/cron/)
    }
    expect(() => new Heed({ agents: {}, storage, notifications: null as never })).toThrow(/notifications must be an object/)
    await heed.close()
  })
})
