import assert from 'node:assert/strict'
import type { ScoreRow } from '../../contract/scores.ts'
import type { ThreadStore } from '../../contract/threads.ts'
import { commit, finish, row, scope, start, type StoreCase } from '../fixture.ts'

const span = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const scores = [{ scorerId: 'tone', version: '1', ...span, agentVersion: 3 }, { scorerId: 'length', version: '2' }]

/** Runs to its end a run that is to be scored. */
async function scoredRun(store: ThreadStore, id = 'a'): Promise<void> {
  const rows = [row(`${id}-says`, 'assistant')]
  await commit(store, await start(store, id), { rows, drain: true, end: { status: 'finished', scores } })
}

const claim = (store: ThreadStore, now: number, more: object = {}) =>
  store.claimScores({ now, until: now + 100, limit: 10, agentIds: ['agent-1'], ...more })
const named = (rows: readonly ScoreRow[]) => rows.map(({ scorerId, attempts }) => `${scorerId} ${attempts}`).toSorted()

export const scoreCases: StoreCase[] = [
  {
    name: '[J4.1] the commit that finishes a run stores the work to score it, once; another end stores none',
    async run({ store: open }) {
      const store = await open()
      const before = Date.now() - 1
      await scoredRun(store)
      const { scores: listed, more } = await store.listScores({ limit: 10 })
      assert.equal(more, false)
      assert.ok(listed.every(({ createdAt }) => createdAt > before))
      const plain = listed.map(({ key: _, createdAt: _at, ...one }) => one)
      assert.deepEqual(plain.toSorted((a, b) => a.scorerId.localeCompare(b.scorerId)), [
        { ...scope, agentId: 'agent-1', runId: 'run-of-a', scorerId: 'length', version: '2', state: 'pending', attempts: 0, steps: 1 },
        {
          ...scope, agentId: 'agent-1', runId: 'run-of-a', scorerId: 'tone', version: '1', state: 'pending', attempts: 0, steps: 1, ...span,
          agentVersion: 3,
        },
      ])
      await commit(store, await start(store, 'b'), { rows: [], end: { status: 'failed', scores } as never })
      await commit(store, await start(store, 'c'), { rows: [row('c-says', 'assistant')], ...finish })
      assert.equal((await store.listScores({ limit: 10 })).scores.length, 2)
    },
  },
  {
    name: '[J4.2] a claimed score is hidden until its claim ends, and an attempt that was claimed again settles nothing',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      const now = Date.now() + 1_000
      assert.deepEqual(await claim(store, now, { agentIds: ['other'] }), [])
      const first = await claim(store, now)
      assert.deepEqual(named(first), ['length 1', 'tone 1'])
      assert.deepEqual(await claim(store, now), [])
      assert.equal(await store.nextScoreDue(['agent-1', 'other']), now + 100)
      const again = await claim(store, now + 200)
      assert.deepEqual(named(again), ['length 2', 'tone 2'])
      const toneOf = (rows: readonly ScoreRow[]) => rows.find(({ scorerId }) => scorerId === 'tone') ?? assert.fail()
      const [late, later] = [toneOf(first), toneOf(again)]
      assert.equal(await store.settleScore(late, { state: 'scored', score: 0.1 }, now), false)
      const scored = { state: 'scored', score: 0.75, reason: 'kind', usage: { inputTokens: 3 } } as const
      assert.equal(await store.settleScore(later, scored, now + 201), true)
      assert.equal(await store.settleScore(later, { state: 'scored', score: 0.9 }, now + 202), false)
      const { scores: [settled] } = await store.listScores({ runId: 'run-of-a', scorerId: 'tone', limit: 10 })
      assert.deepEqual(
        [settled?.state, settled?.score, settled?.reason, settled?.usage, settled?.settledAt],
        ['scored', 0.75, 'kind', { inputTokens: 3 }, now + 201],
      )
    },
  },
  {
    name: '[J4.3] a score that failed is due again at its time, or stays failed with its error',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      const now = Date.now() + 1_000
      const [one, other] = (await claim(store, now)) as [ScoreRow, ScoreRow]
      assert.equal(await store.settleScore(one, { state: 'failed', error: { message: 'late' }, retryAt: now + 5_000 }, now), true)
      assert.equal(await store.settleScore(other, { state: 'failed', error: { code: 'x', message: 'never' } }, now), true)
      assert.equal(await store.nextScoreDue(['agent-1']), now + 5_000)
      assert.deepEqual(named(await claim(store, now + 5_000)), [`${one.scorerId} 2`])
      const { scores: failed } = await store.listScores({ state: 'failed', limit: 10 })
      assert.deepEqual(failed.map(({ scorerId, error }) => [scorerId, error]), [[other.scorerId, { code: 'x', message: 'never' }]])
    },
  },
  {
    name: '[J4.4] scores are listed newest first by thread, resource, agent and run, and are moved and deleted with their thread',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      await scoredRun(store, 'b')
      const all = await store.listScores({ ...scope, agentId: 'agent-1', limit: 3 })
      assert.deepEqual([all.scores.length, all.more], [3, true])
      assert.ok(all.scores.every(({ key }, index) => index === 0 || key < (all.scores[index - 1]?.key ?? 0)))
      const rest = await store.listScores({ before: all.scores[2]?.key ?? 0, limit: 3 })
      assert.deepEqual([rest.scores.map(({ runId }) => runId), rest.more], [['run-of-a'], false])
      assert.deepEqual((await store.listScores({ resourceId: 'nobody', limit: 10 })).scores, [])
      assert.deepEqual((await store.listScores({ threadId: 'none', limit: 10 })).scores, [])
      await store.transferThread(scope, 'another')
      assert.equal((await store.listScores({ resourceId: 'another', limit: 10 })).scores.length, 4)
      await store.deleteThread({ threadId: scope.threadId })
      assert.deepEqual((await store.listScores({ threadId: scope.threadId, limit: 10 })).scores, [])
    },
  },
]
