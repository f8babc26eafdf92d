import assert from 'node:assert/strict'
import type { ModelCall } from '../../contract/threads.ts'
import {
  accept, acceptOne, alive, begin, commit, finish, gone, ids, row, scope, send, start, threadId, type StoreCase,
} from '../fixture.ts'

/** A model call whose prompt has the first rows of the thread. */
function call(rows: number, more: Partial<ModelCall> = {}): ModelCall {
  return {
    startedAt: 5,
    provider: 'p',
    modelId: 'm',
    finishReason: 'stop',
    usage: { inputTokens: 3 },
    head: { hash: 'head-1', text: '{"system":[]}', tools: { hash: 'tools-1', text: '[]' } },
    window: { from: 1, cut: 0 },
    rows,
    messages: rows,
    hash: `hash-${rows}`,
    ...more,
  }
}

export const stepCases: StoreCase[] = [
  {
    name: '[I2.2] [I1.1] a commit stores the model call of its step, and its prompt is read with the rows and the head that it had',
    async run(harness) {
      let store = await harness.store()
      const first = await start(store)
      await commit(store, first, { rows: [row('asks', 'assistant')], started: ['c'], call: call(1) })
      await commit(store, first, { rows: [row('result', 'tool')], drain: true })
      await commit(store, first, { step: 1, rows: [row('says', 'assistant')], ...finish, call: call(3, { altered: { of: 3, rows: [1] } }) })
      await commit(store, await start(store, 'b'), { rows: [row('again', 'assistant')], ...finish, call: call(5) })
      if (harness.reopen) store = await harness.reopen(store)

      const [later, earlier] = await store.listRunDetails(scope, { limit: 10 })
      assert.deepEqual([later?.runId, earlier?.runId], ['run-of-b', 'run-of-a'])
      const { finishedAt, ...step } = earlier?.steps[0] ?? assert.fail()
      assert.ok(finishedAt > 0)
      const { head: _, ...same } = call(1)
      assert.deepEqual(step, { ...same, runId: 'run-of-a', step: 0, epoch: first.fence.epoch, owner: 'p1', head: 'head-1' })
      const altered = { of: 3, rows: [1] }
      assert.deepEqual(earlier?.steps.map((one) => [one.step, one.messages, one.altered]), [[0, 1, undefined], [1, 3, altered]])
      assert.deepEqual((await store.listRunDetails(scope, { limit: 1, offset: 1 })).map((run) => run.steps.length), [2])

      const prompt = (await store.readPrompt(scope, 'run-of-a', 1)) ?? assert.fail()
      assert.deepEqual([ids(prompt.rows), prompt.head], [['a', 'asks', 'result'], { text: '{"system":[]}', tools: '[]' }])
      assert.deepEqual([prompt.previous?.step.step, ids(prompt.previous?.rows ?? [])], [0, ['a']])
      const next = (await store.readPrompt(scope, 'run-of-b', 0)) ?? assert.fail()
      assert.deepEqual([next.previous?.run.runId, next.previous?.step.step], ['run-of-a', 1])
      assert.deepEqual(ids(next.rows), ['a', 'asks', 'result', 'says', 'b'])
      assert.equal(await store.readPrompt(scope, 'run-of-a', 2), null)
      assert.equal(await store.readPrompt(scope, 'none', 0), null)
    },
  },
  {
    name: '[I1.4] steps are deleted with their thread and pruned with its records; a head is removed with its last step, once it is old',
    async run({ store: open }) {
      const store = await open()
      const later = Date.now() + 1e10
      const other = { ...scope, threadId: 'thread-2' }
      await commit(store, await start(store), { rows: [row('x', 'assistant')], ...finish, call: call(1) })
      const woken = await acceptOne(store, send('c', { threadId: other.threadId }))
      const run = await begin(store, woken.fence ?? assert.fail())
      await commit(store, run, { rows: [row('y', 'assistant')], ...finish, call: call(1) })
      assert.deepEqual(await store.pruneHeads({ before: later, limit: 10 }), { removed: 0 })
      await store.deleteThread(other)
      assert.deepEqual(await store.pruneHeads({ before: later, limit: 10 }), { removed: 0 })
      await store.pruneSome({ recordsBefore: later, limit: 100 })
      assert.deepEqual(await store.listRunDetails(scope, { limit: 10 }), [])
      assert.deepEqual(await store.pruneHeads({ before: 1, limit: 10 }), { removed: 0 })
      assert.deepEqual(await store.pruneHeads({ before: later, limit: 10 }), { removed: 1 })
    },
  },
  {
    name: '[I1.4] a head stays while a step has it, after a change and back, and if a thread uses it again after its steps were pruned',
    async run(harness) {
      let store = await harness.store()
      const later = Date.now() + 1e10
      const prune = async () => (await store.pruneHeads({ before: later, limit: 10 })).removed
      const second = { hash: 'head-2', text: '{"system":["2"]}', tools: { hash: 'tools-1', text: '[]' } }
      await commit(store, await start(store, 'a'), { rows: [row('x', 'assistant')], ...finish, call: call(1) })
      await commit(store, await start(store, 'b'), { rows: [row('y', 'assistant')], ...finish, call: call(3, { head: second }) })
      await commit(store, await start(store, 'c'), { rows: [row('z', 'assistant')], ...finish, call: call(5) })
      assert.equal(await prune(), 0)
      await store.pruneSome({ recordsBefore: later, limit: 100 })
      assert.equal(await prune(), 2)
      // A process relies on a head that it stored within the last hour: another one stores it again.
      if (!harness.reopen) return
      store = await harness.reopen(store)
      const last = await start(store, 'd')
      await commit(store, last, { rows: [row('w', 'assistant')], ...finish, call: call(7) })
      assert.equal(await prune(), 0)
      assert.equal((await store.readPrompt(scope, last.run.runId, 0))?.head?.text, '{"system":[]}')
      await store.deleteThread(scope)
      assert.equal(await prune(), 1)
    },
  },
  {
    name: '[I2.3] a signal has the times and the process that took it, and when it was settled, however that happened',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('b'), send('c', { mode: 'queue' }), send('d', { ifActive: { behavior: 'persist' } }))
      await store.cancelSignals(scope, ['c'])
      await commit(store, run, { drain: true })
      await commit(store, run, { step: 1, ...finish })
      const signals = await store.listSignals(scope, { before: Number.MAX_SAFE_INTEGER, limit: 10 })
      assert.deepEqual(signals.map(({ id, state }) => `${id} ${state}`), ['d consumed', 'c cancelled', 'b consumed', 'a consumed'])
      for (const { id, drainedAt, drainedBy, epoch, settledAt } of signals) {
        const taken = id === 'a' || id === 'b'
        assert.deepEqual([drainedBy, epoch], taken ? ['p1', run.fence.epoch] : [undefined, undefined])
        assert.equal(drainedAt !== undefined, taken)
        assert.ok(settledAt !== undefined && settledAt >= (drainedAt ?? 0), id)
      }
      assert.deepEqual((await store.listSignals(scope, { before: signals[1]?.ord ?? 0, limit: 1 })).map(({ id }) => id), ['b'])
    },
  },
  {
    name: '[I2.2] a takeover is kept with the process that was lost and the step that continues; a decision with who made it and why',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1', 'p2')
      const run = await start(store)
      await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
      await gone(store, 'p1')
      const claimed = (await store.claim(threadId, 'p2')) ?? assert.fail()
      const again = await begin(store, claimed.fence)
      const asked = { toolCallId: 'c', toolName: 'pay', args: {}, kind: 'approval' as const }
      await commit(store, again, { step: 1, rows: [row('asks', 'assistant')], end: { status: 'suspended', calls: [asked] } })
      await store.decide(scope, { toolCallId: 'c', approved: false, reason: 'no', by: 'ada' }, 'p2')
      const [details] = await store.listRunDetails(scope, { limit: 10 })
      assert.deepEqual(details?.takeovers.map(({ at, ...rest }) => [at > 0, rest]), [
        [true, { epoch: claimed.fence.epoch, runId: 'run-of-a', step: 1, from: 'p1', to: 'p2' }],
      ])
      assert.deepEqual(details?.decisions.map(({ at, ...rest }) => [at > 0, rest]), [
        [true, { toolCallId: 'c', toolName: 'pay', kind: 'approval', approved: false, reason: 'no', by: 'ada' }],
      ])
    },
  },
  {
    name: '[I2.6] a process is listed after it closed or its heartbeat expired, and counts as gone',
    async run({ store: open }) {
      const store = await open()
      const info = { pid: 7, host: 'h', version: '1.2.3', startedAt: 9 }
      await store.heartbeat('p1', Date.now() + 3_600_000, info)
      await store.heartbeat('p2', Date.now() + 3_600_000)
      await store.heartbeat('p3', Date.now() - 1_000)
      await start(store)
      const byOwner = async () => new Map((await store.listProcesses()).map((one) => [one.owner, one]))
      const before = await byOwner()
      const { pid, host, version, startedAt, threads, end } = before.get('p1') ?? assert.fail()
      assert.deepEqual([{ pid, host, version, startedAt }, threads, end], [info, 1, undefined])
      assert.deepEqual([before.get('p2')?.end, before.get('p3')?.end], [undefined, 'expired'])
      await store.resign('p1')
      const closed = (await byOwner()).get('p1')
      assert.deepEqual([closed?.end, closed?.threads, closed?.pid], ['closed', 0, 7])
      assert.ok(await store.claim(threadId, 'p2'))
    },
  },
]
