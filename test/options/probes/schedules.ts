import { expect } from 'vitest'
import type { Agent, ScheduleInput, ScheduleRecord } from '../../../src/index.ts'
import { open, rejects, thread, type Probe } from '../probe.ts'
import { heed, testing } from '../walked.ts'

type Create = (agent: Agent, input: ScheduleInput) => Promise<ScheduleRecord>

const doors: Record<string, Create> = {
  'Agent.schedule': (agent, input) => agent.schedule(input),
  'AgentSchedules.create': (agent, input) => agent.schedules.create(input),
  'AgentSchedules.createOnce': async (agent, input) => (await agent.schedules.createOnce({ id: 'new', ...input })).schedule,
}

const about = { attributes: { from: 'desk' }, metadata: { m: 1 }, providerOptions: { x: { y: 1 } } }

function made() {
  const clock = testing.virtualClock(Date.UTC(2026, 0, 1))
  return { clock, ...open({}, () => 'Fine.', { clock, storage: new heed.InMemoryStore({ clock }) }) }
}

const created = Object.entries(doors).map(([name, create]): Probe => ({
  title: `${name}: what it sends, and when`,
  async run() {
    const { agent, clock } = made()
    const message = await create(agent, { ...thread, id: 'a', every: 60_000, message: { contents: 'Now.', ...about }, overlap: 'skip', missed: 'all' })
    expect(message).toMatchObject({ ...thread, id: 'a', timing: { every: 60_000 }, overlap: 'skip', missed: 'all', signal: { type: 'user', contents: 'Now.', ...about } })
    const signal = await create(agent, {
      ...thread, id: 'b', cron: '30 7 * * *', timeZone: 'Europe/Zurich', signal: { type: 'notification', contents: 'Look.', tagName: 'note', transient: true, ...about },
    })
    expect(signal).toMatchObject({
      nextAt: new Date('2026-01-01T06:30:00Z'), timing: { cron: '30 7 * * *' }, signal: { type: 'notification', contents: 'Look.', tagName: 'note', transient: true, ...about },
    })
    const at = new Date(clock.now() + 5_000)
    expect(await create(agent, { ...thread, id: 'c', at, message: 'Once.' })).toMatchObject({ nextAt: at })
    for (const own of [{ message: { id: 'm', contents: 'x' } }, { signal: { id: 's', type: 'reactive' as const, contents: 'x' } }])
      await rejects(() => create(agent, { ...thread, id: 'd', every: 60_000, ...own } as never), 'id')
    await rejects(() => create(agent, { ...thread, id: 'e', every: 60_000, message: 'x', when: 1 } as never), 'when')
  },
}))

/** What a schedule sends, and its queries. */
export const scheduled: Probe[] = [
  ...created,
  {
    title: 'AgentSchedules: what finds, stops and removes a schedule',
    async run() {
      const { agent } = made()
      const { schedules } = agent
      for (const id of ['a', 'b', 'c']) await schedules.create({ ...thread, id, every: 60_000, message: 'x' })
      expect(await schedules.pause({ id: 'b', resourceId: thread.resourceId })).toMatchObject({ id: 'b', status: 'paused' })
      const ids = async (query: Parameters<typeof schedules.list>[0]) => (await schedules.list(query)).schedules.map(({ id }) => id)
      expect([await ids({ status: 'paused' }), await ids({ after: 'a' })]).toEqual([['b'], ['b', 'c']])
      expect(await schedules.resume({ id: 'b', resourceId: thread.resourceId })).toMatchObject({ id: 'b', status: 'active' })
      for (const call of [schedules.pause, schedules.resume]) await rejects(() => call({ id: 'b', resourceId: 'other' }), 'b')
      expect([await schedules.remove({ id: 'b', resourceId: 'other' }), await schedules.remove({ id: 'b' })]).toEqual([false, true])
    },
  },
]
