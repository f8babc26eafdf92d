import assert from 'node:assert/strict'
import type { Accepted, LaneWrite, Send, ThreadStore } from '../../contract/threads.ts'
import type { StoreWriterCase } from '../fixture.ts'
import {
  accept, acceptOne, alive, commit, finish, ids, persisted, queued, resourceId, rowIds, scope, send, start, states,
} from '../fixture.ts'
import { answerOr, ascending, countFrom, exactlyOne, rounds } from './race.ts'

/** Three sends of one writer, each a call of its own: at once, or one after the other. */
async function three(store: ThreadStore, prefix: string, more: Partial<Send>, atOnce: boolean): Promise<Accepted[]> {
  const sends = threeOf(prefix).map((id) => send(id, more))
  if (atOnce) return Promise.all(sends.map((one) => acceptOne(store, one)))
  const answers: Accepted[] = []
  for (const one of sends) answers.push(await acceptOne(store, one))
  return answers
}

const threeOf = (prefix: string) => [0, 1, 2].map((index) => prefix + index)
const startingWith = (prefix: string, all: readonly string[]) => all.filter((id) => id.startsWith(prefix))

const lane = (cacheKey: string): { lane: LaneWrite } => ({ lane: { id: 'browser', cacheKey, mode: 'snapshot' } })

/** What two connections that send to one thread at the same time may rely on. */
export const acceptanceWriterCases: StoreWriterCase[] = [
  {
    name: '[R1.2] [R1.6] of two sends that create one thread one wakes it and the other enters its run',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await alive(one, 'p1', 'p2')
      const answers = await together(
        () => acceptOne(one, send('a', { threadId, claim: { owner: 'p1' } })),
        () => acceptOne(two, send('b', { threadId, claim: { owner: 'p2' } })),
      )
      assert.deepEqual(answers.map(({ route, duplicate }) => `${route} ${duplicate}`).toSorted(), ['deliver false', 'wake false'])
      const woke = answers.find(({ route }) => route === 'wake')
      const { owner } = woke?.fence ?? {}
      assert.deepEqual(answers.map((answer) => [answer.runId, answer.owner, answer.epoch]), answers.map(() => [woke?.runId, owner, 1]))
      const thread = await two.getThread({ threadId })
      assert.deepEqual([thread?.status, thread?.owner, thread?.runId, thread?.epoch], ['running', owner, woke?.runId, 1])
      const signals = await one.listSignals({ threadId })
      assert.deepEqual([signals[0]?.runId, ids(signals).toSorted()], [woke?.runId, ['a', 'b']])
      assert.equal(new Set(signals.map(({ ord }) => ord)).size, 2)
    }),
  },
  {
    name: '[D1.1] [R1.6] two writers on an idle thread: each row has a place and an epoch of its own, in the order of its writer',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await acceptOne(one, send('first', { threadId, ...persisted }))
      const atOnce = nth % 4 < 2
      const how = { threadId, ...persisted }
      const answers = (await together(() => three(one, 'a', how, atOnce), () => three(two, 'b', how, atOnce))).flat()
      assert.deepEqual(ascending(answers.map(({ epoch }) => epoch)), countFrom(2, 6))
      assert.deepEqual(ascending(answers.flatMap(({ rows }) => rows.map(({ seq }) => seq ?? 0))), countFrom(2, 6))
      const history = await rowIds(two, threadId)
      for (const prefix of ['a', 'b']) assert.deepEqual(startingWith(prefix, history), threeOf(prefix))
      assert.equal(history.length, 7)
    }),
  },
  {
    name: '[R2.1] [R1.6] two writers on an active thread: each signal has a place of its own, and the run takes all in that order',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const run = await start(one, 'first', { threadId })
      const atOnce = nth % 4 < 2
      const answers = (await together(() => three(one, 'a', { threadId }, atOnce), () => three(two, 'b', { threadId }, atOnce))).flat()
      assert.deepEqual(new Set(answers.map(({ route, runId }) => `${route} ${runId}`)), new Set(['deliver run-of-first']))
      const signals = await two.listSignals({ threadId })
      assert.deepEqual(signals.map(({ ord }) => ord), ascending([...new Set(signals.map(({ ord }) => ord))]))
      for (const prefix of ['a', 'b']) assert.deepEqual(startingWith(prefix, ids(signals)), threeOf(prefix))
      const { taken } = await commit(one, run, { drain: true })
      assert.deepEqual(ids(taken), ids(signals).slice(1))
      assert.equal(taken.length, 6)
    }),
  },
  {
    name: '[A2.3] [R1.2] [R1.6] the same signal sent by both is one signal, one run and one lease',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await alive(one, 'p1', 'p2')
      const how = [{}, queued, persisted][nth % 3]
      const answers = await together(
        () => acceptOne(one, send('same', { threadId, ...how, claim: { owner: 'p1' } })),
        () => acceptOne(two, send('same', { threadId, ...how, claim: { owner: 'p2' } })),
      )
      exactlyOne(answers.map(({ duplicate }) => duplicate))
      assert.equal(new Set(answers.map(({ route, runId }) => `${route} ${runId}`)).size, 1)
      assert.equal(answers.filter(({ fence }) => fence).length, nth % 3 === 2 ? 0 : 1)
      assert.deepEqual(ids(await one.listSignals({ threadId })), ['same'])
      assert.equal((await two.getThread({ threadId }))?.epoch, 1)
    }),
  },
  {
    name: '[R3.1] [R3.2] [R1.6] a signal that is sent while a run ends is taken by that run or wakes the next',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const run = await start(one, 'first', { threadId })
      await alive(two, 'p2')
      const [ended, late] = await together(
        () => commit(one, run, finish),
        () => acceptOne(two, send('late', { threadId, claim: { owner: 'p2' } })),
      )
      const thread = await two.getThread({ threadId })
      if (ended.ended) {
        assert.deepEqual([ended.more, late.route, late.fence?.owner, late.runId], [false, 'wake', 'p2', 'run-of-late'])
        assert.deepEqual([thread?.status, thread?.owner, thread?.runId], ['running', 'p2', 'run-of-late'])
        assert.deepEqual(await states(one, threadId), { first: 'consumed', late: 'pending' })
      } else {
        assert.deepEqual([ids(ended.taken), late.route, late.runId], [['late'], 'deliver', 'run-of-first'])
        assert.deepEqual([thread?.status, thread?.owner, thread?.runId], ['running', 'p1', 'run-of-first'])
        assert.deepEqual(await states(one, threadId), { first: 'consumed', late: 'taken' })
      }
      const orphans = await one.listOrphans(Date.now(), 1_000)
      assert.deepEqual(orphans.filter((orphan) => orphan.threadId === threadId), [])
    }),
  },
  {
    name: '[A3.2] [R1.6] batches that name the same threads in opposite orders are both stored',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threads = [`left-${nth}`, `right-${nth}`, `middle-${nth}`]
      const batch = (id: string, of: readonly string[]) => of.map((threadId) => send(id, { threadId, ...persisted }))
      await together(() => accept(one, ...batch('a', threads)), () => accept(two, ...batch('b', threads.toReversed())))
      for (const threadId of threads) {
        assert.deepEqual((await rowIds(two, threadId)).toSorted(), ['a', 'b'])
        assert.equal((await one.getThread({ threadId }))?.epoch, 2)
      }
    }),
  },
  {
    name: '[L1.1] [R1.6] of two writers that set a lane to the same state one is stored and the other skipped',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await start(one, 'first', { threadId })
      const answers = await together(
        () => acceptOne(one, send('a', { threadId, ...lane('same') })),
        () => acceptOne(two, send('b', { threadId, ...lane('same') })),
      )
      assert.deepEqual(answers.map(({ route }) => route).toSorted(), ['deliver', 'skipped'])
      const stored = answers.find(({ route }) => route === 'deliver')?.rows[0]?.id
      assert.deepEqual(answers.map((answer) => [answer.lane?.version, answer.lane?.lastSignalId]), [[1, stored], [1, stored]])
      assert.deepEqual(ids(await two.listSignals({ threadId })), ['first', stored])
    }),
  },
  {
    name: '[L1.3] [L1.4] [R1.6] two writers that set a lane to other states get versions of their own, and the lane is the last of them',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const put = async (store: ThreadStore, prefix: string) => {
        for (const id of threeOf(prefix)) await acceptOne(store, send(id, { threadId, ...persisted, ...lane(id) }))
      }
      await together(() => put(one, 'a'), () => put(two, 'b'))
      const { signals } = await two.listLaneSignals({ threadId }, 'browser', { limit: 100 })
      assert.deepEqual(signals.map(({ version }) => version), countFrom(1, 6).toReversed())
      assert.deepEqual(signals.map(({ cacheKey }) => cacheKey).toSorted(), ['a0', 'a1', 'a2', 'b0', 'b1', 'b2'])
      const now = await one.readLane({ threadId }, 'browser')
      assert.deepEqual([now?.version, now?.cacheKey], [6, signals[0]?.cacheKey])
    }),
  },
  {
    name: '[R1.6] a thread that is deleted while a signal is sent to it is gone with all of it, or new with that signal alone',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await acceptOne(one, send('a', { threadId, ...persisted }))
      const { epoch } = await acceptOne(one, send('b', { threadId, ...persisted }))
      const [deleted, late] = await together(
        () => one.deleteThread({ threadId, resourceId }),
        () => acceptOne(two, send('late', { threadId, ...persisted })),
      )
      assert.deepEqual([deleted, late.route, late.duplicate], [true, 'persist', false])
      if (await two.getThread({ threadId })) {
        assert.deepEqual([await rowIds(two, threadId), await states(one, threadId)], [['late'], { late: 'consumed' }])
        assert.ok(late.epoch > epoch + 1, 'the new thread begins above the epochs of the deleted one')
      } else assert.equal(late.epoch, epoch + 1)
      // No record of the deleted thread makes the same ids duplicates.
      assert.equal((await acceptOne(two, send('a', { threadId, ...persisted }))).duplicate, false)
    }),
  },
  {
    name: '[M1.7] [X1.1] [R1.6] a thread that is transferred while its old owner wakes it is transferred or woken, not both',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await alive(one, 'p1')
      await acceptOne(one, send('a', { threadId, ...persisted }))
      const [given, woke] = await together(
        () => answerOr(one.transferThread({ threadId, resourceId: scope.resourceId }, 'resource-2'), 'thread_active'),
        () => answerOr(acceptOne(two, send('b', { threadId })), 'thread_forbidden'),
      )
      const thread = await two.getThread({ threadId })
      if (given === 'thread_active') {
        assert.ok(woke !== 'thread_forbidden' && woke.fence)
        assert.deepEqual([thread?.resourceId, thread?.status], ['resource-1', 'running'])
      } else {
        assert.equal(woke, 'thread_forbidden')
        assert.deepEqual([thread?.resourceId, thread?.status, await rowIds(one, threadId)], ['resource-2', 'idle', ['a']])
      }
    }),
  },
]
