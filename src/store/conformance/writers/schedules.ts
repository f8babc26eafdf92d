import assert from 'node:assert/strict'
import type { NewSchedule, ScheduleStore } from '../../contract/schedules.ts'
import type { TwoWriters } from '../case.ts'
import type { ScheduleHarness } from '../schedules.ts'
import { exactlyOne, rounds } from './race.ts'

export interface ScheduleWriterCase {
  name: string
  run(harness: TwoWriters<ScheduleHarness>): Promise<void>
}

const now = 1_700_000_000_000

const advance = { from: now + 5, nextAt: now + 1_005, sent: { at: now + 5, signalId: 'sent' }, now: now + 11 }

function planned(id: string, agentId: string, contents = 'Look around.'): NewSchedule {
  return {
    id, agentId, threadId: 'thread-1', resourceId: 'resource-1', timing: { every: 1_000 }, overlap: 'allow', missed: 'once',
    signal: { id: `signal-${contents}`, type: 'user', tagName: 'user', contents, createdAt: new Date(now).toISOString() },
    nextAt: now + 5, now,
  }
}

/** What a `ScheduleStore` guarantees to two connections, as cases for any test runner. They need a harness with `another`. */
export const scheduleWriterConformance: ScheduleWriterCase[] = [
  {
    name: '[S1.1] [R1.6] an occurrence is claimed by one of two',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const agentId = `agent-${nth}`
      const ids = [0, 1, 2, 3].map((index) => `s-${nth}-${index}`)
      for (const id of ids) await one.putSchedule(planned(id, agentId))
      const claim = { now: now + 10, until: now + 1_000, limit: 100, agentIds: [agentId] }
      const claims = await together(() => one.claimSchedules(claim), () => two.claimSchedules(claim))
      assert.deepEqual(claims.flat().map(({ id }) => id).toSorted(), ids)
    }),
  },
  {
    name: '[S1.5] [R1.6] a schedule that both add is one, and both are answered with it',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const id = `s-${nth}`
      const add = (store: ScheduleStore, contents: string) => store.addSchedule(planned(id, 'agent-1', contents))
      const answers = await together(() => add(one, 'a'), () => add(two, 'b'))
      exactlyOne(answers.map(({ added }) => added))
      const kept = await two.getSchedule({ id })
      assert.deepEqual(answers.map(({ schedule }) => schedule), [kept, kept])
      assert.equal(kept?.signal.contents, answers[0].added ? 'a' : 'b')
    }),
  },
  {
    name: '[S1.10] [R1.6] a schedule that is replaced while its occurrence is recorded is the new one, with the due time of the new one',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const id = `s-${nth}`
      const agentId = `agent-${nth}`
      const { signal } = await one.putSchedule(planned(id, agentId, 'old'))
      await one.claimSchedules({ now: now + 10, until: now + 1_000, limit: 1, agentIds: [agentId] })
      await together(
        () => one.advanceSchedule({ ...advance, id, signalId: signal.id }),
        () => two.putSchedule({ ...planned(id, agentId, 'new'), nextAt: now + 7 }),
      )
      const kept = await two.getSchedule({ id })
      assert.deepEqual([kept?.signal.contents, kept?.nextAt?.getTime(), kept?.status], ['new', now + 7, 'active'])
    }),
  },
]
