import assert from 'node:assert/strict'
import type { SuspendedCall, ThreadStore } from '../../contract/threads.ts'
import {
  acceptOne, alive, begin, commit, finish, gone, ids, queued, rejectsWith, row, rowIds, send, start, states, status, unclaimed, wide,
  windows, type Begun, type StoreWriterCase,
} from '../fixture.ts'
import { answerOr, rounds } from './race.ts'

const call = (toolCallId: string): SuspendedCall => ({ toolCallId, toolName: 'pay', args: { amount: 5 }, kind: 'approval' })

async function suspend(store: ThreadStore, threadId: string, ...toolCallIds: string[]): Promise<Begun> {
  const run = await start(store, 'a', { threadId })
  await commit(store, run, { rows: [row('said', 'assistant')], end: { status: 'suspended', calls: toolCallIds.map(call) } })
  return run
}

/** What two processes that run, take over and decide one thread at the same time may rely on. */
export const runWriterCases: StoreWriterCase[] = [
  {
    name: '[J4.2] of two claims of one score one gets it',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const run = await start(one, 'a', { threadId: `thread-${nth}` })
      const scores = [{ scorerId: `tone-${nth}`, version: '1' }]
      await commit(one, run, { rows: [row('said', 'assistant')], drain: true, end: { status: 'finished', scores } })
      const now = Date.now() + 1_000
      const claim = { now, until: now + 1e9, limit: 10, agentIds: ['agent-1'] }
      const claims = await together(() => one.scores.claim(claim), () => two.scores.claim(claim))
      assert.deepEqual(claims.flat().map(({ scorerId, attempts }) => [scorerId, attempts]), [[`tone-${nth}`, 1]])
    }),
  },
  {
    name: '[O1.2] of two drafts, and of two releases, on one base one is stored and the other is rejected',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const agentId = `edited-${nth}`
      const of = { kind: 'agent', id: agentId } as const
      const made = { ...of, now: 1_700_000_000_000 }
      const save = (store: ThreadStore, by: string) => (
        answerOr(store.saveVersion({ ...made, base: 0, contents: { instructions: by }, by }), 'edit_conflict')
      )
      const saved = await together(() => save(one, 'ann'), () => save(two, 'bob'))
      assert.equal(saved.filter((answer) => answer === 'edit_conflict').length, 1)
      const { versions } = await two.listVersions({ ...of, limit: 9 })
      const kept = saved.flatMap((answer) => (answer === 'edit_conflict' ? [] : answer.version))
      assert.deepEqual(versions, kept)
      const publish = (store: ThreadStore, by: string) => (
        answerOr(store.publishVersion({ ...made, expected: 0, version: 1, by }), 'edit_conflict')
      )
      const published = await together(
        () => publish(one, 'ann'), () => publish(two, 'bob'),
        () => answerOr(two.rollBackVersion({ ...made, expected: 0, by: 'cai' }), 'edit_conflict', 'unknown_version'),
      )
      const stored = published.flatMap((answer) => (typeof answer === 'string' ? [] : answer))
      assert.deepEqual((await one.listReleases({ ...of, limit: 9 })).releases, stored)
      assert.deepEqual(stored.map(({ release }) => release), [1])
    }),
  },
  {
    name: '[R1.2] [R1.6] of two claims of a thread with a pending signal one gets the lease',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const { epoch } = await acceptOne(one, send('a', { threadId, ...unclaimed }))
      await alive(one, 'p1', 'p2')
      const claims = await together(() => one.claim(threadId, 'p1'), () => two.claim(threadId, 'p2'))
      const [won, ...others] = claims.filter((claimed) => claimed !== null)
      assert.deepEqual([won?.fence.epoch, won?.takenOver, others], [epoch + 1, false, []])
      const thread = await two.getThread({ threadId })
      assert.deepEqual([thread?.owner, thread?.epoch], [won?.fence.owner, epoch + 1])
    }),
  },
  {
    name: '[R1.2] [R5.1] [R1.6] of two takeovers of one run one gets the lease',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const owner = `gone-${nth}`
      const run = await start(one, 'a', { threadId, claim: { owner } })
      await gone(two, owner)
      await alive(one, 'p1', 'p2')
      const claims = await together(() => one.claim(threadId, 'p1'), () => two.claim(threadId, 'p2'))
      const [won, ...others] = claims.filter((claimed) => claimed !== null)
      assert.ok(won && others.length === 0)
      assert.deepEqual([won.fence.epoch, won.takenOver], [run.fence.epoch + 1, true])
      const again = await begin(won.fence.owner === 'p1' ? one : two, won.fence)
      assert.deepEqual([again.resumed, again.run.runId, again.run.attempts], [true, 'run-of-a', 2])
    }),
  },
  {
    name: '[R11.1] [R1.1] [R1.6] a thread that is deleted and created again during a commit rejects the commits of its former run',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const run = await start(one, 'a', { threadId })
      const [, late] = await together(
        async () => {
          await two.deleteThread({ threadId })
          return acceptOne(two, send('b', { threadId, claim: { owner: 'p1' } }))
        },
        () => answerOr(commit(one, run, { rows: [row('said', 'assistant')] }), 'fenced'),
      )
      assert.ok(late === 'fenced' || late.rows.length === 1)
      await rejectsWith('fenced', commit(one, run, { rows: [row('later', 'assistant')] }))
      const thread = await one.getThread({ threadId })
      assert.ok(thread && thread.epoch > run.fence.epoch + 1)
      assert.equal(await one.lifeOf(threadId), thread.epoch - 1)
      assert.deepEqual([await rowIds(one, threadId), await states(two, threadId)], [[], { b: 'pending' }])
    }),
  },
  {
    name: '[R1.1] [R5.1] [R1.6] a step that is committed during a takeover is in the run as a whole, or rejected and not stored',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const owner = `slept-${nth}`
      const run = await start(one, 'a', { threadId, claim: { owner } })
      await acceptOne(one, send('b', { threadId }))
      await gone(one, owner)
      await alive(two, 'p2')
      const [committed, claimed] = await together(
        () => answerOr(commit(one, run, { rows: [row('said', 'assistant')], drain: true }), 'fenced'),
        () => two.claim(threadId, 'p2'),
      )
      assert.ok(claimed)
      const again = await begin(two, claimed.fence)
      const entered = committed === 'fenced' ? [] : ['said', 'b']
      assert.deepEqual([ids(again.rows), again.run.step], [['a', ...entered], committed === 'fenced' ? 0 : 1])
      assert.deepEqual(await states(one, threadId), committed === 'fenced' ? { a: 'taken', b: 'pending' } : { a: 'consumed', b: 'taken' })
      assert.equal(await answerOr(commit(one, run, { step: 1 }), 'fenced'), 'fenced')
    }),
  },
  {
    name: '[R1.1] [R3.1] [R1.6] a run that ends during a takeover is finished, or continues in the other process',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const owner = `slept-${nth}`
      const run = await start(one, 'a', { threadId, claim: { owner } })
      await gone(one, owner)
      await alive(two, 'p2')
      const [ended, claimed] = await together(
        () => answerOr(commit(one, run, { rows: [row('said', 'assistant')], ...finish }), 'fenced'),
        () => two.claim(threadId, 'p2'),
      )
      assert.equal(ended === 'fenced', claimed !== null)
      assert.deepEqual(await rowIds(two, threadId), claimed ? ['a'] : ['a', 'said'])
      const stored = await one.getRun({ threadId }, 'run-of-a')
      assert.deepEqual([await status(one, threadId), stored?.status], claimed ? ['running', 'running'] : ['idle', 'finished'])
    }),
  },
  {
    name: '[R6.1] [R1.6] two decisions about two calls of one run are both kept, and the last of them takes the lease',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const { fence } = await suspend(one, threadId, 'c1', 'c2')
      const answers = await together(
        () => one.decide({ threadId }, { toolCallId: 'c1', approved: true }, 'p1'),
        () => two.decide({ threadId }, { toolCallId: 'c2', approved: false, reason: 'no' }, 'p2'),
      )
      const [lease, ...others] = answers.flatMap((answer) => answer.fence ?? [])
      assert.deepEqual([lease?.epoch, others], [fence.epoch + 1, []])
      const run = await two.getRun({ threadId }, 'run-of-a')
      assert.deepEqual(run?.suspended.map(({ decision }) => decision?.approved), [true, false])
      const thread = await one.getThread({ threadId })
      assert.deepEqual([thread?.status, thread?.owner], ['running', lease?.owner])
    }),
  },
  {
    name: '[R6.3] [R6.4] [R1.6] of two decisions about one call one is stored and the other rejected',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await suspend(one, threadId, 'c1')
      const answers = await together(
        () => answerOr(one.decide({ threadId }, { toolCallId: 'c1', approved: true }, 'p1'), 'run_not_suspended'),
        () => answerOr(two.decide({ threadId }, { toolCallId: 'c1', approved: false }, 'p2'), 'run_not_suspended'),
      )
      const counted = answers.findIndex((answer) => answer !== 'run_not_suspended')
      assert.equal(answers[1 - counted], 'run_not_suspended')
      const run = await two.getRun({ threadId }, 'run-of-a')
      assert.deepEqual(run?.suspended.map(({ decision }) => decision?.approved), [counted === 0])
      assert.equal((await one.getThread({ threadId }))?.owner, `p${counted + 1}`)
    }),
  },
  {
    name: '[R6.6] [R1.6] a decision that both send under one id is stored once, and both get its result',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await suspend(one, threadId, 'c1')
      const decision = { id: 'answer', toolCallId: 'c1', approved: true }
      const answers = await together(() => one.decide({ threadId }, decision, 'p1'), () => two.decide({ threadId }, decision, 'p2'))
      assert.deepEqual(answers.map(({ runId, toolCallId }) => [runId, toolCallId]), [['run-of-a', 'c1'], ['run-of-a', 'c1']])
      const [lease, ...others] = answers.flatMap((answer) => answer.fence ?? [])
      assert.deepEqual([lease?.owner, others], [(await two.getThread({ threadId }))?.owner, []])
    }),
  },
  {
    name: '[R8.3] [R8.4] [R1.6] a suspended run that is decided and ended at the same time continues or is aborted',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await suspend(one, threadId, 'c1')
      const [decided, end] = await together(
        () => answerOr(one.decide({ threadId }, { toolCallId: 'c1', approved: true }, 'p1'), 'run_not_suspended'),
        () => two.endSuspended({ threadId }, 'run-of-a', {}),
      )
      assert.equal(decided === 'run_not_suspended', end.ended)
      const thread = await two.getThread({ threadId })
      const run = await one.getRun({ threadId }, 'run-of-a')
      const now = [thread?.status, thread?.owner, run?.status]
      assert.deepEqual(now, end.ended ? ['idle', undefined, 'aborted'] : ['running', 'p1', 'running'])
    }),
  },
  {
    name: '[R4.1] [R1.6] a signal that is cancelled while its run begins is cancelled or taken, not both',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await acceptOne(one, send('a', { threadId, ...queued, ...unclaimed }))
      await alive(one, 'p1')
      const claimed = await one.claim(threadId, 'p1')
      assert.ok(claimed)
      const [begun, cancelled] = await together(
        () => one.beginRun(claimed.fence, windows(wide)),
        () => two.cancelSignals({ threadId }, ['a']),
      )
      assert.deepEqual(begun === null ? [] : ids(begun.taken), cancelled.length === 0 ? ['a'] : [])
      assert.deepEqual(await states(two, threadId), { a: begun ? 'taken' : 'cancelled' })
      assert.deepEqual([await status(two, threadId), await rowIds(one, threadId)], begun ? ['running', ['a']] : ['idle', []])
    }),
  },
  {
    name: '[R1.2] [R5.4] [R1.6] concurrent heartbeats are stored, and no thread of a live process is listed as orphaned or claimed',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const owner = `beating-${nth}`
      const until = Date.now() + 3_600_000
      await together(() => one.heartbeat(owner, until), () => two.heartbeat(owner, until + 1))
      await acceptOne(one, send('a', { threadId, claim: { owner } }))
      const beat = async () => {
        for (let index = 0; index < 3; index += 1) await one.heartbeat(owner, until + index)
      }
      const look = async () => {
        const orphans = await two.listOrphans(Date.now(), 1_000)
        return [orphans.some((orphan) => orphan.threadId === threadId), await two.claim(threadId, 'p2')]
      }
      const [, seen] = await together(beat, look)
      assert.deepEqual(seen, [false, null])
    }),
  },
  {
    name: '[R1.2] [R5.4] [R1.6] a process that returns during a takeover keeps its lease or is fenced',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const owner = `back-${nth}`
      const run = await start(one, 'a', { threadId, claim: { owner } })
      await gone(one, owner)
      const [, claimed] = await together(() => one.heartbeat(owner, Date.now() + 3_600_000), () => two.claim(threadId, 'p2'))
      const committed = await answerOr(commit(one, run, { rows: [row('said', 'assistant')] }), 'fenced')
      assert.equal(committed === 'fenced', claimed !== null)
      assert.deepEqual(await rowIds(two, threadId), claimed ? ['a'] : ['a', 'said'])
    }),
  },
]
