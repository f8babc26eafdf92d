import assert from 'node:assert/strict'
import type { NotificationStore } from '../../contract/notifications.ts'
import type { TwoWriters } from '../fixture.ts'
import { claim, decided, note, now, scope, type NotificationHarness } from '../notifications/fixture.ts'
import { answerOr, exactlyOne, rounds } from './race.ts'

/** A case with two writers of notifications. */
export interface NotificationWriterCase {
  name: string
  run(harness: TwoWriters<NotificationHarness>): Promise<void>
}

const inbox = async (store: NotificationStore, threadId: string) => (await store.listNotifications({ threadId, limit: 100 })).notifications

/** What a `NotificationStore` guarantees to two connections, as cases for any test runner. They need a harness with `another`. */
export const notificationWriterConformance: NotificationWriterCase[] = [
  {
    name: '[N1.1] [R1.6] sends of one dedupeKey by both are one record with their count',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const ingest = async (store: NotificationStore, prefix: string) => {
        const outcomes: string[] = []
        for (const index of [0, 1, 2]) {
          const [ingested] = await store.ingest([note(prefix + index, { threadId, dedupeKey: 'k' })])
          outcomes.push(ingested?.outcome ?? 'none')
        }
        return outcomes
      }
      const outcomes = (await together(() => ingest(one, 'a'), () => ingest(two, 'b'))).flat()
      assert.deepEqual(outcomes.toSorted(), ['counted', 'counted', 'counted', 'counted', 'counted', 'created'])
      assert.deepEqual((await inbox(two, threadId)).map(({ coalescedCount }) => coalescedCount), [6])
    }),
  },
  {
    name: '[N1.2] [R1.6] sends of one coalesceKey by both are one record that recognizes the id of each',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const send = (store: NotificationStore, id: string) => store.ingest([note(id, { threadId, coalesceKey: 'k' })])
      await together(() => send(one, 'a'), () => send(two, 'b'))
      assert.deepEqual([(await send(one, 'b'))[0]?.outcome, (await send(two, 'a'))[0]?.outcome], ['counted', 'counted'])
      assert.deepEqual((await inbox(two, threadId)).map(({ coalescedCount }) => coalescedCount), [2])
    }),
  },
  {
    name: '[H6.5] [R1.6] of two lists with one new id one is stored and the other rejected as a whole',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const send = (store: NotificationStore, other: string) =>
        answerOr(store.ingest([note(other, { threadId, isNew: true }), note('same', { threadId, isNew: true })]), 'id_taken')
      const answers = await together(() => send(one, 'a'), () => send(two, 'b'))
      const stored = answers.findIndex((answer) => answer !== 'id_taken')
      assert.equal(answers[1 - stored], 'id_taken')
      assert.deepEqual((await inbox(one, threadId)).map(({ id }) => id).toSorted(), [stored === 0 ? 'a' : 'b', 'same'])
    }),
  },
  {
    name: '[N2.1] [R1.6] of two dispatchers one claims a due record',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const agentIds = [`agent-${nth}`]
      const due = { action: 'defer', deliverAt: now, now, claimUntil: now } as const
      const items = ['a', 'b', 'c', 'd'].map((id) => note(id, { threadId, agentId: agentIds[0], settlement: due }))
      await one.ingest(items)
      const claims = await together(() => one.claimDue({ ...claim, agentIds }), () => two.claimDue({ ...claim, agentIds }))
      assert.deepEqual(claims.flatMap(({ records }) => records.map(({ id }) => id)).toSorted(), ['a', 'b', 'c', 'd'])
    }),
  },
  {
    name: '[N1.5] [R1.6] of two decisions about one record one is applied',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await one.ingest([note('a', { threadId })])
      const settle = async (store: NotificationStore) =>
        (await store.settle([decided('a', { threadId, action: 'deliver', deliverAt: now, claimUntil: now + 100_000 })]))[0]?.applied
      const applied = await together(() => settle(one), () => settle(two))
      exactlyOne(applied)
    }),
  },
  {
    name: '[N4.1] [R1.6] a watcher that reads while both write sees every record',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const [threadId, resourceId] = [`thread-${nth}`, `resource-${nth}`]
      let { cursor } = await one.listChanges({ resourceId, limit: 10 })
      const seen = new Set<string>()
      const read = async () => {
        const page = await one.listChanges({ resourceId, after: cursor, limit: 10 })
        for (const { record } of page.changes) seen.add(record.id)
        ;({ cursor } = page)
        return page.more
      }
      const write = async (store: NotificationStore, prefix: string) => {
        for (const index of [0, 1, 2]) await store.ingest([note(prefix + index, { ...scope, threadId, resourceId })])
      }
      const watch = async () => {
        for (let looks = 0; looks < 6; looks += 1) await read()
      }
      await together(() => write(one, 'a'), () => write(two, 'b'), watch)
      while (await read()) { /* the next page */ }
      assert.deepEqual([...seen].toSorted(), ['a0', 'a1', 'a2', 'b0', 'b1', 'b2'])
    }),
  },
]
