import assert from 'node:assert/strict'
import type { NewNotification, SettlementTerms, SummaryTime } from '../../contract/notifications.ts'
import { claim, note, now, scope, window, type NotificationCase } from './fixture.ts'

const summaryTerms = (summary: SummaryTime): SettlementTerms => ({ action: 'summarize', summary, now, claimUntil: now + 1_000 })
const at = (time: number, source: string, more: Partial<NewNotification> = {}) =>
  note(source, { source, settlement: summaryTerms({ form: 'timed', at: now + time, withinMs: 0 }), ...more })

/** When records and summaries are due, and which are claimed together. */
export const notificationDueConformance: NotificationCase[] = [
  {
    name: '[N1.8] due summaries of one agent, resource and thread are claimed as one; a later one is not part of it',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([
        at(1, 'a'), at(3, 'b'), at(30, 'later'), at(2, 'c', { agentId: 'agent-2' }), at(2, 'd', { resourceId: 'resource-2' }),
        at(2, 'e', { threadId: 'thread-2' }),
      ])
      await store.ingest([note('w', { source: 'w', settlement: summaryTerms(window) })])
      const first = await store.claimDue({ ...claim, agentIds: ['agent-1', 'agent-2'] })
      assert.deepEqual(first.batches.map(({ sources }) => sources.map(({ source }) => source).join()).toSorted(), ['a,b,w', 'c', 'd', 'e'])
      // Summaries that were claimed together are due again together.
      const ours = first.batches.find(({ sources }) => sources.length === 3)
      const again = await store.claimDue({ ...claim, now: claim.until, until: claim.until + 1_000 })
      assert.deepEqual(again.batches.filter(({ id }) => id === ours?.id).map(({ sources }) => sources.length), [3])
      assert.equal(again.batches.some(({ sources }) => sources[0]?.source === 'later' && sources.length === 1), true)
      await store.summarised(ours?.id ?? '', 's1')
      const { notifications } = await store.listNotifications(scope)
      assert.deepEqual(notifications.filter(({ summarySignalId }) => summarySignalId === 's1').map(({ id }) => id), ['w', 'b', 'a'])
    },
  },
  {
    name: '[N1.8] [N1.10] an immediate summary includes what is due; a summary that is being sent does not change',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([at(1, 'sent')])
      const [sent] = (await store.claimDue({ ...claim, until: now + 12 })).batches
      await store.ingest([at(1, 'due'), at(30, 'later')])
      const [one] = await store.ingest([
        note('n', { source: 'n', now: now + 11, settlement: { ...summaryTerms({ form: 'now' }), now: now + 11 } }),
      ])
      assert.deepEqual(one?.settled?.batch?.sources.map(({ source }) => source), ['due', 'n'])
      const { batches } = await store.claimDue({ ...claim, now: now + 12 })
      assert.deepEqual(batches.map(({ id, sources }) => [id, sources.length]), [[sent?.id, 1]])
    },
  },
  {
    name: '[N2.13] records that wait until a thread is idle are one check, later each time, and none when no record is left',
    async run({ store: open }) {
      const store = await open()
      const idle = { action: 'defer', whenIdle: { recheckAt: now + 100 }, now, claimUntil: now } as const
      await store.ingest(Array.from({ length: 150 }, (_, index) => note(`n${index}`, { settlement: idle })))
      await store.ingest([
        note('far', { settlement: { ...idle, deliverAt: now + 5_000 } }),
        note('theirs', { agentId: 'agent-2', settlement: { ...idle, whenIdle: { recheckAt: now + 9_000 } } }),
      ])
      const looks: number[] = []
      for (let time = await store.nextDue(['agent-1']); time !== undefined && time < now + 2_000; time = await store.nextDue(['agent-1'])) {
        const due = await store.claimDue({ ...claim, now: time, until: time + 10, recheckMs: { least: 100, most: 500 } })
        assert.deepEqual([due.idleThreads, due.records], [[scope.threadId], []])
        looks.push(time - now)
      }
      assert.deepEqual(looks, [100, 200, 400, 800, 1_300, 1_800])
      // The thread is idle: records for agents of other processes are due too.
      assert.equal((await store.claimIdle(scope.threadId, { ...claim, now: now + 2_000, limit: 150 })).length, 150)
      assert.deepEqual([await store.nextDue(['agent-2']), await store.nextDue(['agent-1'])], [now + 2_000, claim.until])
      await store.markNotifications(scope, ['theirs'], 'seen', now)
      assert.deepEqual((await store.claimDue({ ...claim, now: now + 2_000, agentIds: ['agent-2'] })).idleThreads, [])
      assert.equal(await store.nextDue(['agent-2']), undefined)
      // A record with a later time waits with the others from then on.
      const last = { ...claim, limit: 400, now: now + 5_000, until: now + 6_000, recheckMs: { least: 100, most: 500 } }
      assert.deepEqual((await store.claimDue(last)).idleThreads, [scope.threadId])
      assert.deepEqual((await store.claimDue({ ...last, now: now + 5_100 })).idleThreads, [scope.threadId])
      await store.forgetThreads([scope.threadId])
      assert.equal(await store.nextDue(['agent-1', 'agent-2']), undefined)
    },
  },
  {
    name: '[N1.6] [N2.11] undecided records are claimed up to the limit and for the time of the call; those beyond it do not delay others',
    async run({ store: open }) {
      const store = await open()
      await store.ingest(Array.from({ length: 5 }, (_, index) => note(`n${index}`, { undecidedUntil: now })))
      await store.ingest([note('due', { settlement: { action: 'defer', deliverAt: now + 5, now, claimUntil: now } })])
      const taken = async (time: number) => {
        const { undecided, records } = await store.claimDue({
          ...claim, now: time, until: time + 10, undecided: { limit: 3, until: time + 100 },
        })
        return [...undecided, ...records].map(({ id }) => id)
      }
      assert.deepEqual(await taken(now + 5), ['n0', 'n1', 'n2', 'due'])
      await store.delivered([{ threadId: scope.threadId, id: 'due', signalId: 's', status: 'delivered', now }])
      assert.deepEqual([await taken(now + 14), await taken(now + 15), await taken(now + 104)], [[], ['n3', 'n4'], []])
      assert.deepEqual(await taken(now + 105), ['n0', 'n1', 'n2'])
    },
  },
  {
    name: '[N1.10] a summary that is taken back is due again, unless another summary counts its records',
    async run({ store: open }) {
      const store = await open()
      const emit = async (id: string) => {
        const [one] = await store.ingest([note(id, { source: id, settlement: summaryTerms({ form: 'now' }) })])
        const batchId = one?.settled?.batch?.id ?? ''
        await store.summarised(batchId, `summary-${id}`)
        return batchId
      }
      const [first, second] = [await emit('a'), await emit('b')]
      await store.holdBatches([first, second, 'none'], now + 50)
      assert.equal(await store.nextDue(['agent-1']), now + 50)
      const [third] = await store.ingest([
        note('c', { source: 'c', settlement: { ...summaryTerms({ form: 'now' }), claimUntil: now + 90 } }),
      ])
      const whole = await store.joinBatches(third?.settled?.batch?.id ?? '', [first])
      assert.deepEqual(whole?.sources.map(({ source }) => source), ['a', 'c'])
      const { batches } = await store.claimDue({ ...claim, now: now + 50 })
      assert.deepEqual(batches.map(({ id, sources }) => [id, sources.length]), [[second, 1]])
    },
  },
]
