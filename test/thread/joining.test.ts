import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds, type Place } from './places.ts'
import { idle, soon } from './said.ts'

const thread = { threadId: 't', resourceId: 'u' }

/** A process that ends in the middle of a run. */
async function leaveUnfinished(place: Place): Promise<void> {
  const agent = new Agent({ id: 'a', model: scriptedModel([{ text: 'Half', hang: true }]) })
  const heed = openHeed({ agent }, place.store())
  await agent.sendMessage('Go.', thread).outcome
  await heed.close()
}

describe.each(sharedPlaceKinds())('a new process, $name', ({ make }) => {
  it('[N2.4] processes with tick() what another process left', async () => {
    const place = make()
    await leaveUnfinished(place)
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'a', model })
    const heed = openHeed({ agent }, place.store())
    expect(await heed.tick()).toMatchObject({ threads: 1 })
    await idle(agent, thread)
    expect(model.callCount).toBe(1)
  })

  it('[N2.4] sends with tick() what was due before it began', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const notifications = { dispatch: { enabled: false } }
    const first = new Agent({ id: 'a', model: scriptedModel([]) })
    const before = openHeed({ first }, place.store(), { notifications, clock })
    await first.sendNotificationSignal({ source: 's', kind: 'k', summary: 'S', priority: 'low' }, thread)
    await before.close()
    await clock.advance(60_000)
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Done.') })
    const heed = openHeed({ agent }, place.store(), { notifications, clock })
    expect(await heed.tick()).toMatchObject({ notifications: 1 })
    expect(await heed.tick()).toMatchObject({ notifications: 0 })
  })

  it('[G1.11] continues at start() the runs of an agent that was created with its Heed', async () => {
    const place = make()
    await leaveUnfinished(place)
    const heed = openHeed({}, place.store())
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'a', model, heed })
    await heed.start()
    await idle(agent, thread)
    expect(model.callCount).toBe(1)
  })

  it('[A4.1] reports that a signal entered a run without a live owner, not that it waits for a decision', async () => {
    const place = make()
    await leaveUnfinished(place)
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Done.') })
    openHeed({ agent }, place.store())
    // The first look of the sweep and this send both take the thread up.
    const outcome = await agent.sendMessage('Hello?', thread).outcome
    expect(outcome.reason).toBeUndefined()
    expect(['delivered', 'woke']).toContain(outcome.action)
    await idle(agent, thread)
  })
})

describe('an agent that names its Heed', () => {
  const model = () => scriptedModel(() => 'x')

  it('[G1.11] is one of its agents', async () => {
    const heed = new Heed({ storage: new InMemoryStore(), logger: silentLogger })
    const agent = new Agent({ id: 'a', model: model(), heed })
    expect(heed.getAgent('a')).toBe(agent)
    expect(heed.getAgentById('a')).toBe(agent)
    expect(heed.listAgents()).toEqual({ a: agent })
    const newer = new Agent({ id: 'a', model: model(), heed })
    expect(heed.getAgent('a')).toBe(newer)
    expect(() => new Agent({ model: model(), heed })).toThrow(expect.objectContaining({ code: 'invalid_agent' }))
    await heed.close()
  })

  it('[G1.11] is registered with its Heed after start() too', async () => {
    const heed = new Heed({ storage: new InMemoryStore(), logger: silentLogger })
    await heed.start()
    const agent = new Agent({ id: 'a', model: model(), heed })
    expect(agent.threads().hasAgent('a')).toBe(true)
    await heed.close()
  })

  it('[G1.11] is rejected by a second Heed while the first is open', async () => {
    const agent = new Agent({ id: 'a', model: model() })
    const first = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    expect(() => new Heed({ agents: { agent }, storage: new InMemoryStore() })).toThrow(expect.objectContaining({ code: 'invalid_agent' }))
    expect(() => new Agent({ id: 'a', model: model(), heed: first as unknown as Heed })).toThrow(expect.objectContaining({ code: 'invalid_agent' }))
    await soon(async () => (await first.getAgent('agent').generate('Hi', { memory: { thread: 't', resource: 'u' } })).text).toBe('x')
    await first.close()
    const second = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    expect(second.getAgent('agent')).toBe(agent)
    await second.close()
  })
})
