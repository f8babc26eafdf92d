import { describe, expect, it } from 'vitest'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { jumpingClock } from './shifted-clock.ts'
import { call, code, message, opened, reasons, target, watching } from './watching.ts'

const hour = 3_600_000
const minute = 60_000
const input = { description: 'the login code', expected_channels: ['sms'], result_schema: code }
const found = call('complete_task', { result: '482913' })

describe('a clock that jumps', () => {
  it('[V1.8] an hour forward ends a watch of half an hour once, and no other; back again opens none (case 50)', async () => {
    const clock = jumpingClock()
    const { heed, agent, adapter, model } = watching({ clock, script: () => 'Noted.', judge: () => found })
    const short = await agent.awaitSignal({ ...input, expires_in_minutes: 30 }, { ...target, threadId: 'short' })
    const long = await agent.awaitSignal({ ...input, expires_in_minutes: 300 }, { ...target, threadId: 'long' })
    clock.jump(hour)
    await heed.tick()
    await soon(async () => (await agent.getWatch({ id: short.id }))?.reason).toBe('expired')
    expect(await agent.getWatch({ id: long.id })).toMatchObject({ state: 'open' })
    clock.jump(-hour)
    await heed.tick()
    expect(await agent.getWatch({ id: short.id })).toMatchObject({ state: 'ended', reason: 'expired' })
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await heed.tick()
    await soon(async () => (await agent.getWatch({ id: long.id }))?.reason).toBe('matched')
    await soon(() => model.callCount).toBe(2)
  })

  it('[V1.8] an hour back delays what is judged, and drops none of it (case 50)', async () => {
    const clock = jumpingClock()
    const { heed, agent, adapter, model } = watching({ clock, script: () => 'Noted.', judge: () => found })
    const { id } = await agent.awaitSignal({ ...input, expires_in_minutes: 30 }, target)
    clock.jump(-hour)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    await heed.tick()
    // Stored before the watch by the clock, and after it by its number.
    await soon(async () => (await agent.getWatch({ id }))?.candidates.length).toBe(1)
    clock.jump(hour + minute)
    await heed.tick()
    await soon(() => reasons(model)).toEqual(['matched'])
  })

  it('[V2.14] at a change to summer time a watch of two hours lasts two hours, and a time with its offset is that time (case 50)', async () => {
    const before = Date.UTC(2026, 2, 29, 0, 30)
    const clock = jumpingClock()
    clock.jump(before - clock.now())
    const { agent } = watching({ clock, script: () => 'Noted.', judge: () => found })
    const relative = await agent.awaitSignal({ ...input, expires_in_minutes: 120 }, target)
    expect(relative.expiresAt.getTime() - relative.createdAt.getTime()).toBe(2 * hour)
    const absolute = await agent.awaitSignal({ ...input, expires_at: '2026-03-29T03:30:00+02:00' }, target)
    expect(absolute.expiresAt.toISOString()).toBe('2026-03-29T01:30:00.000Z')
  })
})

describe('tenants', () => {
  it('[V1.4] the same channel kind, contact and categories of another tenant: no candidate, neither now nor in look-back (case 41)', async () => {
    const phones = { ada: directChannel({ kind: 'sms' }), bob: directChannel({ kind: 'sms' }) }
    const [model, judging] = [scriptedModel(() => 'Noted.'), scriptedModel(() => found)]
    const agent = new Agent({ id: 'assistant', model, watches: { model: judging } })
    opened({
      agents: { agent }, storage: new InMemoryStore(), logger: silentLogger,
      channels: Object.entries(phones).map(([resourceId, adapter]) => new Channel({ id: `phone-${resourceId}`, adapter, resourceId })),
    })
    const wait = { ...input, expected_categories: ['verification_code'], look_back_seconds: 600 }
    await phones.bob.deliver(message('early', 'Your code is 111111.'))
    const { id } = await agent.awaitSignal(wait, target)
    await phones.bob.deliver(message('live', 'Your code is 222222.'))
    const own = await agent.awaitSignal(wait, { threadId: 'bobs', resourceId: 'bob' })
    await soon(async () => (await agent.getWatch({ id: own.id }))?.reason).toBe('matched')
    expect(await agent.getWatch({ id })).toMatchObject({ state: 'open', candidates: [] })
    expect((await agent.explain({ watchId: id }))?.messages).toEqual([])
    await phones.ada.deliver(message('early', 'Your code is 482913.'))
    await soon(async () => (await agent.getWatch({ id }))?.reason).toBe('matched')
    expect(JSON.stringify(judging.calls.at(-1))).not.toMatch(/111111|222222/)
  })
})

describe('many watches', () => {
  it('[V1.3] 1,000 open watches and 100 messages: models are asked about what passes the filters alone (case 53)', async () => {
    const { agent, adapter, judging, heed } = watching({ script: () => 'Noted.', judge: () => 'No.' })
    const continuous = { ...input, mode: 'continuous' } as const
    await Promise.all(Array.from({ length: 999 }, (_, nth) => {
      const excluded = [
        { expected_channels: ['telegram'] }, { expected_contacts: [`contact-${nth}`] }, { expected_categories: [`label_${nth}`] },
        { expected_categories: ['travel'], expected_contacts: ['bank'] },
      ][nth % 4]
      return agent.awaitSignal({ ...continuous, expected_channels: ['sms'], ...excluded }, { ...target, id: `w-${nth}`, threadId: `t-${nth}` })
    }))
    await agent.awaitSignal({ ...continuous, expected_contacts: ['bank'] }, { ...target, id: 'bank' })
    await adapter.deliver(...Array.from({ length: 100 }, (_, nth) => message(String(nth), 'Your balance has changed.', nth % 10 === 0 ? '+15550100' : `+1555${1_000 + nth}`)))
    await soon(async () => (await agent.getWatch({ id: 'bank' }))?.evaluations).toBe(10)
    await heed.tick()
    expect(judging.callCount).toBe(10)
    const { watches } = await agent.listWatches({ limit: 1_000 })
    expect(watches.filter(({ evaluations, skipped }) => evaluations + skipped > 0).map(({ id }) => id)).toEqual(['bank'])
  })
})
