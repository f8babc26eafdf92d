import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { placeKinds } from '../thread/places.ts'
import { idle, soon } from '../thread/said.ts'
import { openWorld, thread } from '../inbox/world.ts'

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
