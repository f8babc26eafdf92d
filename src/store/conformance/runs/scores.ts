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
  store.scores.claim({ now, until: now + 100, limit: 10, agentIds: ['agent-1'], ...more })
const named = (rows: readonly ScoreRow[]) => rows.map(({ scorerId, attempts }) => `${scorerId} ${attempts}`).toSorted()

export const scoreCases: StoreCase[] = [
  {
    name: '[J4.1] [J4.12] the commit that ends a run stores the work to score it that it brings, once; a rejected run has none',
    async run({ store: open }) {
      const store = await open()
      const before = Date.now() - 1
      await scoredRun(store)
      const { scores: listed, more } = await store.scores.list({ limit: 10 })
      assert.equal(more, false)
      assert.ok(listed.every(({ createdAt }) => createdAt > before))
      const plain = listed.map(({ key: _, createdAt: _at, ...one }) => one)
      assert.deepEqual(plain.toSorted((a, b) => a.scorerId.localeCompare(b.scorerId)), [
        {
          ...scope, agentId: 'agent-1', runId: 'run-of-a', scorerId: 'length', version: '2', state: 'pending', source: 'live', attempts: 0,
          steps: 1,
        },
        {
          ...scope, agentId: 'agent-1', runId: 'run-of-a', scorerId: 'tone', version: '1', state: 'pending', source: 'live', attempts: 0,
          steps: 1, ...span, agentVersion: 3,
        },
      ])
      await commit(store, await start(store, 'b'), { rows: [], end: { status: 'rejected', scores } as never })
      await commit(store, await start(store, 'c'), { rows: [row('c-says', 'assistant')], ...finish })
      assert.equal((await store.scores.list({ limit: 10 })).scores.length, 2)
      await commit(store, await start(store, 'd'), { rows: [], end: { status: 'failed', error: { message: 'x' }, scores } })
      assert.deepEqual((await store.scores.list({ runId: 'run-of-d', limit: 10 })).scores.length, 2)
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
      assert.equal(await store.scores.nextDue(['agent-1', 'other']), now + 100)
      const again = await claim(store, now + 200)
      assert.deepEqual(named(again), ['length 2', 'tone 2'])
      const toneOf = (rows: readonly ScoreRow[]) => rows.find(({ scorerId }) => scorerId === 'tone') ?? assert.fail()
      const [late, later] = [toneOf(first), toneOf(again)]
      assert.equal(await store.scores.settle(late, { state: 'scored', score: 0.1 }, now), false)
      const scored = { state: 'scored', score: 0.75, reason: 'kind', usage: { inputTokens: 3 } } as const
      assert.equal(await store.scores.settle(later, scored, now + 201), true)
      assert.equal(await store.scores.settle(later, { state: 'scored', score: 0.9 }, now + 202), false)
      const { scores: [settled] } = await store.scores.list({ runId: 'run-of-a', scorerId: 'tone', limit: 10 })
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
      assert.equal(await store.scores.settle(one, { state: 'failed', error: { message: 'late' }, retryAt: now + 5_000 }, now), true)
      assert.equal(await store.scores.settle(other, { state: 'failed', error: { code: 'x', message: 'never' } }, now), true)
      assert.equal(await store.scores.nextDue(['agent-1']), now + 5_000)
      assert.deepEqual(named(await claim(store, now + 5_000)), [`${one.scorerId} 2`])
      const { scores: failed } = await store.scores.list({ state: 'failed', limit: 10 })
      assert.deepEqual(failed.map(({ scorerId, error }) => [scorerId, error]), [[other.scorerId, { code: 'x', message: 'never' }]])
    },
  },
  {
    name: '[J4.4] scores are listed newest first by thread, resource, agent and run, and are moved and deleted with their thread',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      await scoredRun(store, 'b')
      const all = await store.scores.list({ ...scope, agentId: 'agent-1', limit: 3 })
      assert.deepEqual([all.scores.length, all.more], [3, true])
      assert.ok(all.scores.every(({ key }, index) => index === 0 || key < (all.scores[index - 1]?.key ?? 0)))
      const rest = await store.scores.list({ before: all.scores[2]?.key ?? 0, limit: 3 })
      assert.deepEqual([rest.scores.map(({ runId }) => runId), rest.more], [['run-of-a'], false])
      assert.deepEqual((await store.scores.list({ resourceId: 'nobody', limit: 10 })).scores, [])
      assert.deepEqual((await store.scores.list({ threadId: 'none', limit: 10 })).scores, [])
      await store.transferThread(scope, 'another')
      assert.equal((await store.scores.list({ resourceId: 'another', limit: 10 })).scores.length, 4)
      await store.deleteThread({ threadId: scope.threadId })
      assert.deepEqual((await store.scores.list({ threadId: scope.threadId, limit: 10 })).scores, [])
    },
  },
  {
    name: '[J4.14] a score that is given belongs to a stored run, and is replaced by the next one of the same giver',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      const given = { ...scope, runId: 'run-of-a', scorerId: 'thumbs', version: '1', score: 1, source: 'live' } as const
      const saved = await store.scores.save({ ...given, reason: 'fine', metadata: { page: 3 }, by: 'ann' }, 5_000)
      assert.deepEqual(
        { ...saved, key: 0, createdAt: 0 },
        {
          ...scope, key: 0, agentId: 'agent-1', runId: 'run-of-a', scorerId: 'thumbs', version: '1', state: 'scored', source: 'live',
          by: 'ann', attempts: 0, steps: 1, score: 1, reason: 'fine', metadata: { page: 3 }, createdAt: 0, settledAt: 5_000,
        },
      )
      await store.scores.save({ ...given, by: 'bob', source: 'test' }, 6_000)
      const again = await store.scores.save({ ...given, score: 0, by: 'ann' }, 7_000)
      assert.deepEqual([again?.key, again?.score, again?.reason, again?.settledAt], [saved?.key, 0, undefined, 7_000])
      assert.equal(await store.scores.count({ scorerId: 'thumbs' }), 2)
      assert.equal(await store.scores.count({ scorerId: 'thumbs', source: 'test' }), 1)
      assert.equal(await store.scores.save({ ...given, runId: 'run-of-z' }, 1), null)
      assert.equal(await store.scores.save({ ...given, resourceId: 'another' }, 1), null)
      // What it replaces is not made any more.
      const now = Date.now() + 1_000
      const tone = (await claim(store, now)).find(({ scorerId }) => scorerId === 'tone') ?? assert.fail()
      await store.scores.save({ ...given, scorerId: 'tone', score: 0.5 }, now)
      assert.equal(await store.scores.settle(tone, { state: 'scored', score: 0.9 }, now), false)
      const { scores: listed } = await store.scores.list({ scorerId: 'tone', limit: 10, offset: 0 })
      assert.deepEqual(listed.map(({ state, score }) => [state, score]), [['scored', 0.5]])
      assert.deepEqual((await store.scores.list({ scorerId: 'tone', limit: 10, offset: 1 })).scores, [])
    },
  },
  {
    name: '[J4.15] a failed score that is retried is due again, and one that is made or due stays as it is',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      const now = Date.now() + 1_000
      const [one, other] = (await claim(store, now)) as [ScoreRow, ScoreRow]
      await store.scores.settle(one, { state: 'failed', error: { message: 'x' } }, now)
      await store.scores.settle(other, { state: 'scored', score: 1 }, now)
      assert.equal(await store.scores.retry({ agentId: 'another', limit: 10 }, now), 0)
      assert.equal(await store.scores.retry({ agentId: 'agent-1', limit: 10 }, now + 5), 1)
      assert.equal(await store.scores.retry({ limit: 10 }, now + 5), 0)
      const [retried, ...others] = await claim(store, now + 5)
      assert.deepEqual([retried?.key, retried?.attempts, retried?.retries, retried?.error, others], [one.key, 2, 1, undefined, []])
    },
  },
  {
    name: '[J4.16] the work to score runs that ended before is stored once for each run and scorer',
    async run({ store: open }) {
      const store = await open()
      await scoredRun(store)
      await commit(store, await start(store, 'b'), { rows: [row('b-says', 'assistant')], ...finish })
      const named = { threadId: scope.threadId, scorerId: 'tone', version: '1' }
      const wanted = ['run-of-a', 'run-of-b', 'run-of-z'].map((runId) => ({ ...named, runId }))
      assert.equal(await store.scores.add(wanted, 1), 1)
      assert.equal(await store.scores.add(wanted, 1), 0)
      const { scores: [added] } = await store.scores.list({ runId: 'run-of-b', limit: 10 })
      assert.deepEqual([added?.state, added?.agentId, added?.steps], ['pending', 'agent-1', 1])
    },
  },
  {
    name: '[J4.13] the commit of a step of a workflow stores the work to score it, once for each path',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a')
      const score = (stepPath: string) => ({ scorerId: 'tone', version: '1', stepPath, stepId: 'write', ...span })
      const workflow = (...paths: string[]) => ({
        workflowId: 'order', runId: 'order-1', status: 'running', head: { state: {} }, scores: paths.map(score),
        steps: paths.map((path) => ({ path, row: { path, output: 'x' } })),
      })
      await commit(store, run, { rows: [], workflow: workflow('0', '1[0]'), drain: true })
      await commit(store, run, { rows: [], workflow: workflow('1[0]', '1[1]'), drain: true })
      const { scores: listed } = await store.scores.list({ stepId: 'write', limit: 10 })
      const stored = listed.map(({ runId, stepPath, steps }) => [runId, stepPath, steps])
      assert.deepEqual(stored, ['1[1]', '1[0]', '0'].map((path) => ['order-1', path, undefined]))
    },
  },
]
