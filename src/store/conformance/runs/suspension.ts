import assert from 'node:assert/strict'
import type { SuspendedCall, ThreadStore } from '../../contract/threads.ts'
import {
  accept, begin, commit, everything, finish, gone, ids, persisted, queued, rejectsWith, resultRow, row, scope, send, start, states,
  status, threadId, type Begun, type StoreCase,
} from '../fixture.ts'

const call = (toolCallId: string, more: Partial<SuspendedCall> = {}): SuspendedCall => ({
  toolCallId, toolName: 'pay', args: { amount: 5 }, kind: 'approval', ...more,
})

async function suspend(store: ThreadStore, ...calls: SuspendedCall[]): Promise<Begun> {
  const run = await start(store)
  const { ended, more } = await commit(
    store, run, { rows: [row('said', 'assistant')], end: { status: 'suspended', calls, usage: { tokens: 3 } } },
  )
  assert.deepEqual([ended, more], [true, false])
  return run
}

export const suspensionCases: StoreCase[] = [
  {
    name: '[R6.1] a suspended run has no owner, and continues where it stopped after its decision',
    async run(harness) {
      let store = await harness.store()
      const first = await suspend(store, call('c1', { payload: { why: 'much' } }))
      await gone(store, 'p1')
      if (harness.reopen) store = await harness.reopen(store)

      const thread = await store.getThread(scope)
      assert.deepEqual([thread?.status, thread?.owner, thread?.runId, thread?.agentId], ['suspended', undefined, 'run-of-a', 'agent-1'])
      const waiting = await store.getRun(scope, 'run-of-a')
      assert.deepEqual([waiting?.status, waiting?.suspended, waiting?.usage, waiting?.step], [
        'suspended', [call('c1', { payload: { why: 'much' } })], { tokens: 3 }, 0,
      ])
      assert.equal(typeof waiting?.suspendedAt, 'number')
      assert.deepEqual(ids(await store.listRuns({ resourceId: scope.resourceId, status: ['suspended'] }).then(
        (runs) => runs.map((run) => ({ id: run.runId })),
      )), ['run-of-a'])
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [])

      const decided = await store.decide(scope, { toolCallId: 'c1', approved: true, reason: 'fine' }, 'p2')
      assert.deepEqual(decided, {
        runId: 'run-of-a',
        toolCallId: 'c1',
        agentId: 'agent-1',
        made: { approved: true, reason: 'fine', at: decided.made.at },
        fence: { threadId, owner: 'p2', epoch: first.fence.epoch + 1 },
        parents: [],
        children: [],
      })
      assert.ok(decided.fence)
      const again = await begin(store, decided.fence)
      assert.deepEqual([again.resumed, again.run.step, again.run.status, again.run.attempts], [true, 0, 'running', 1])
      assert.deepEqual(again.run.suspended, [call('c1', { payload: { why: 'much' }, decision: { approved: true, reason: 'fine' } })])
      assert.deepEqual(ids(again.rows), ['a', 'said'])
      await commit(store, again, { rows: [resultRow('r', 'c1')], drain: true })
      const run = await store.getRun(scope, 'run-of-a')
      assert.deepEqual([run?.step, run?.suspended], [1, []])
    },
  },
  {
    name: '[R6.9] a call that asks again in its step is decided under the id of its request only',
    async run({ store: open }) {
      const store = await open()
      const pay = { path: ['agent-1', 'pay'], toolName: 'pay', args: { amount: 5 } }
      const asks = (id: string) => call('c1', { request: { id, ...pay, digest: `digest-${id}` } })
      await suspend(store, asks('q1'))
      const first = await store.decide(scope, { toolCallId: 'c1', digest: 'digest-q1', approved: true, by: 'ann' }, 'p2')
      assert.deepEqual([first.made.approvalId, first.made.by], ['q1', 'ann'])
      assert.ok(first.fence)
      await commit(store, await begin(store, first.fence), { rows: [], end: { status: 'suspended', calls: [asks('q2')] } })
      const before = await everything(store)
      await rejectsWith('invalid_argument', store.decide(scope, { toolCallId: 'c1', approved: true }, 'p2'))
      await rejectsWith('invalid_argument', store.decide(scope, { approved: true }, 'p2'))
      await rejectsWith('run_not_suspended', store.decide(scope, { approvalId: 'q1', approved: true }, 'p2'))
      await rejectsWith('invalid_argument', store.decide(scope, { approvalId: 'q2', digest: 'digest-q1', approved: true }, 'p2'))
      assert.deepEqual(await everything(store), before)
      const second = await store.decide(scope, { approvalId: 'q2', digest: 'digest-q2', approved: false }, 'p2')
      assert.deepEqual([second.toolCallId, second.made.approvalId, second.made.approved], ['c1', 'q2', false])
    },
  },
  {
    name: '[R6.8] a suspended call has not begun; a decided call has when a commit of the continued run names it',
    async run(harness) {
      let store = await harness.store()
      const run = await start(store)
      await commit(store, run, { rows: [row('said', 'assistant')], started: ['c1', 'c2'] })
      await commit(store, run, { rows: [resultRow('r2', 'c2')], end: { status: 'suspended', calls: [call('c1')] } })
      assert.deepEqual((await store.getRun(scope, 'run-of-a'))?.started, [])
      const { fence } = await store.decide(scope, { approved: true }, 'p2')
      assert.ok(fence)
      const again = await begin(store, fence)
      assert.deepEqual(again.run.started, [])
      await commit(store, again, { rows: [], started: ['c1'] })
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual((await store.getRun(scope, 'run-of-a'))?.started, ['c1'])
      await commit(store, again, { rows: [], notStarted: ['c1'] })
      assert.deepEqual((await store.getRun(scope, 'run-of-a'))?.started, [])
      await commit(store, again, { rows: [], started: ['c1'] })
      await commit(store, again, { rows: [resultRow('r1', 'c1')], drain: true })
      assert.deepEqual((await store.getRun(scope, 'run-of-a'))?.started, [])
    },
  },
  {
    name: '[W2.1] a row that is persisted on a thread without an owner gets its own epoch',
    async run(harness) {
      const store = await harness.store()
      const { fence } = await suspend(store, call('c1'))
      const [kept] = await accept(store, send('kept', persisted))
      assert.deepEqual([kept?.route, kept?.owner, kept?.epoch], ['persist', undefined, fence.epoch + 1])
      const decided = await store.decide(scope, { toolCallId: 'c1', approved: true }, 'p2')
      assert.equal(decided.fence?.epoch, fence.epoch + 2)
      await store.resign('p2')
      const [more] = await accept(store, send('more', persisted))
      assert.deepEqual([more?.owner, more?.epoch], [undefined, fence.epoch + 3])
      assert.equal((await store.claim(threadId, 'p3'))?.fence.epoch, fence.epoch + 4)
    },
  },
  {
    name: '[R6.1] of two calls the first decision is kept and the last one resumes',
    async run(harness) {
      let store = await harness.store()
      await suspend(store, call('c1'), call('c2', { kind: 'suspend' }))
      const first = await store.decide(scope, { runId: 'run-of-a', toolCallId: 'c2', resumeData: { code: 42 } }, 'p2')
      const made = { at: first.made.at }
      assert.deepEqual(first, { runId: 'run-of-a', toolCallId: 'c2', agentId: 'agent-1', made, parents: [], children: [] })
      assert.equal(await status(store), 'suspended')
      if (harness.reopen) store = await harness.reopen(store)
      const last = await store.decide(scope, { approved: false, reason: 'no' }, 'p3')
      assert.deepEqual([last.toolCallId, last.fence?.owner], ['c1', 'p3'])
      assert.deepEqual((await store.getRun(scope, 'run-of-a'))?.suspended.map((one) => one.decision), [
        { approved: false, reason: 'no' }, { resumeData: { code: 42 } },
      ])
    },
  },
  {
    name: '[R6.1] decisions at once: each call is decided once, and one of them resumes',
    async run({ store: open }) {
      const store = await open()
      await suspend(store, call('c1'), call('c2'), call('c3'))
      const decisions = await Promise.allSettled(
        ['c1', 'c2', 'c3', 'c1', 'c2', 'c3'].map((toolCallId, index) => store.decide(scope, { toolCallId, approved: true }, `p${index}`)),
      )
      const made = decisions.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
      assert.deepEqual(made.map((decided) => decided.toolCallId), ['c1', 'c2', 'c3'])
      assert.equal(made.filter((decided) => decided.fence).length, 1)
    },
  },
  {
    name: '[R6.1] a decision about another run, an unknown call or a decided call is rejected, and nothing is written',
    async run({ store: open }) {
      const store = await open()
      await start(store, 'x', { threadId: 'running' })
      await rejectsWith('run_not_suspended', store.decide({ threadId: 'running' }, { approved: true }, 'p2'))
      await suspend(store, call('c1'), call('c2'))
      await store.decide(scope, { toolCallId: 'c1', approved: true }, 'p2')
      const before = await everything(store)
      await rejectsWith('run_not_suspended', store.decide(scope, { toolCallId: 'c1', approved: false }, 'p2'))
      await rejectsWith('run_not_suspended', store.decide(scope, { toolCallId: 'c9', approved: true }, 'p2'))
      await rejectsWith('run_not_suspended', store.decide(scope, { runId: 'another', toolCallId: 'c2', approved: true }, 'p2'))
      await rejectsWith('run_not_suspended', store.decide(scope, { step: 1, toolCallId: 'c2', approved: true }, 'p2'))
      await rejectsWith('thread_not_found', store.decide({ threadId: 'nowhere' }, { approved: true }, 'p2'))
      assert.deepEqual(await everything(store), before)
      await store.decide(scope, { approved: true }, 'p2')
      await rejectsWith('run_not_suspended', store.decide(scope, { toolCallId: 'c2', approved: true }, 'p2'))
    },
  },
  {
    name: '[R6.6] a decision with an id has one effect, also concurrently, after a restart or its run; another under that id is rejected',
    async run(harness) {
      let store = await harness.store()
      await suspend(store, call('c1'), call('c2', { kind: 'suspend' }))
      const first = { id: 'd1', toolCallId: 'c1', approved: true }
      const last = { id: 'd2', toolCallId: 'c2', resumeData: { a: 1, b: 2 } }
      const answers = await Promise.all(
        [first, first, last, first, last].map((decision, index) => store.decide(scope, decision, `p${index}`)),
      )
      assert.deepEqual(
        answers.map(({ runId, toolCallId }) => [runId, toolCallId]),
        ['c1', 'c1', 'c2', 'c1', 'c2'].map((toolCallId) => ['run-of-a', toolCallId]),
      )
      const [fence, ...others] = answers.flatMap((answer) => answer.fence ?? [])
      assert.ok(fence)
      assert.deepEqual(others, [])
      await rejectsWith('idempotency_key_reused', store.decide(scope, { ...first, approved: false }, 'p2'))
      await rejectsWith('idempotency_key_reused', store.decide(scope, { ...first, toolCallId: 'c2' }, 'p2'))
      const again = await begin(store, fence)
      await commit(store, again, { rows: [resultRow('r1', 'c1'), resultRow('r2', 'c2')], ...finish })
      if (harness.reopen) store = await harness.reopen(store)
      const before = await everything(store)
      const { fence: none, ...repeated } = await store.decide(scope, { ...last, resumeData: { b: 2, a: 1 } }, 'p3')
      assert.deepEqual([none, repeated.runId, repeated.toolCallId], [undefined, 'run-of-a', 'c2'])
      assert.deepEqual(await everything(store), before)
      // A signal may have the id of a decision: they are separate.
      const [signal] = await accept(store, send('d1'))
      assert.deepEqual([signal?.duplicate, signal?.route], [false, 'wake'])
    },
  },
  {
    name: '[R6.3] an approval needs true or false, and a suspension its data: other decisions are rejected, and the call stays suspended',
    async run({ store: open }) {
      const store = await open()
      await suspend(store, call('c1'), call('c2', { kind: 'suspend' }))
      for (const approved of [undefined, null, 0, 1, 'true', 'false', {}] as Array<boolean | undefined>) {
        await rejectsWith(
          'invalid_argument',
          store.decide(scope, { toolCallId: 'c1', ...(approved === undefined ? {} : { approved }), resumeData: {} }, 'p2'),
        )
      }
      await rejectsWith('invalid_argument', store.decide(scope, { toolCallId: 'c2' }, 'p2'))
      await rejectsWith('invalid_argument', store.decide(scope, { toolCallId: 'c2', approved: true }, 'p2'))
      assert.equal(await status(store), 'suspended')
      await store.decide(scope, { toolCallId: 'c1', approved: false }, 'p2')
      assert.ok((await store.decide(scope, { toolCallId: 'c2', approved: false }, 'p2')).fence)
    },
  },
  {
    name: '[R6.1] a decision that names no call is rejected while several are undecided',
    async run({ store: open }) {
      const store = await open()
      await suspend(store, call('c1'), call('c2'))
      await rejectsWith('invalid_argument', store.decide(scope, { approved: true }, 'p2'))
    },
  },
  {
    name: '[R6.1] a decision by a process that can\'t run the agent leaves the thread to one that can',
    async run({ store: open }) {
      const store = await open()
      await suspend(store, call('c1'))
      const decided = await store.decide(scope, { approved: true })
      assert.equal(decided.fence, undefined)
      assert.deepEqual(await store.listOrphans(Date.now(), 10), [{ threadId, agentId: 'agent-1' }])
      const claimed = await store.claim(threadId, 'p2')
      assert.equal(claimed?.takenOver, true)
      assert.ok(claimed)
      assert.deepEqual((await begin(store, claimed.fence)).run.suspended[0]?.decision, { approved: true })
    },
  },
  {
    name: '[R6.1] input to a suspended thread stays pending, and enters when the run continues',
    async run({ store: open }) {
      const store = await open()
      await suspend(store, call('c1'))
      const answers = await accept(store, send('b'), send('q', queued), send('p', persisted), send('f', { agentId: 'agent-2' }))
      assert.deepEqual(answers.map((answer) => [answer.route, answer.state, answer.fence]), [
        ['deliver', 'pending', undefined], ['queue', 'pending', undefined], [
          'persist', 'consumed', undefined,
        ], ['queue', 'pending', undefined],
      ])
      assert.equal(await status(store), 'suspended')
      const { fence } = await store.decide(scope, { approved: true }, 'p2')
      assert.ok(fence)
      const again = await begin(store, fence)
      assert.deepEqual(ids(again.rows), ['a', 'said'])
      const { taken } = await commit(store, again, { rows: [resultRow('r', 'c1')], drain: true })
      assert.deepEqual(ids(taken), ['b'])
    },
  },
  {
    name: '[R6.1] a suspended run can be ended; pending signals are left to the next run, or cancelled with clearPending',
    async run({ store: open }) {
      const store = await open()
      for (const clearPending of [false, true]) {
        const of = { threadId: `clear-${clearPending}` }
        const run = await start(store, 'a', of)
        await commit(store, run, { rows: [row('said', 'assistant')], end: { status: 'suspended', calls: [call('c1')] } })
        await accept(store, send('b', of), send('note', { ...of, ...persisted }))
        // The note got an epoch of its own.
        const epoch = run.fence.epoch + 1
        assert.deepEqual(await store.endSuspended(of, 'another', {}), { ended: false, denied: [], more: false, epoch, parents: [] })
        assert.deepEqual(
          await store.endSuspended(of, 'run-of-a', { clearPending }),
          { ended: true, denied: [], more: !clearPending, epoch: epoch + 1, parents: [] },
        )
        assert.deepEqual(
          await store.endSuspended(of, 'run-of-a', { clearPending }),
          { ended: false, denied: [], more: false, epoch: epoch + 1, parents: [] },
        )
        assert.equal((await store.getThread(of))?.epoch, epoch + 1, 'what happens on an idle thread takes an epoch of its own')
        assert.equal((await store.getRun(of, 'run-of-a'))?.status, 'aborted')
        assert.equal(await status(store, of.threadId), 'idle')
        const { rows } = await store.listRows(of, { limit: 10 })
        assert.deepEqual(rows.map(({ id, seq }) => [id, seq]), [['a', 1], ['said', 2], ['note', 3]])
        assert.deepEqual(await states(store, of.threadId), { a: 'consumed', b: clearPending ? 'cancelled' : 'pending', note: 'consumed' })
        assert.equal((await store.listOrphans(Date.now(), 10)).some((orphan) => orphan.threadId === of.threadId), !clearPending)
      }
    },
  },
  {
    name: '[R6.1] a run may be suspended again, and ends like any other',
    async run({ store: open }) {
      const store = await open()
      await suspend(store, call('c1'))
      const first = await store.decide(scope, { approved: true }, 'p2')
      assert.ok(first.fence)
      const again = await begin(store, first.fence)
      await commit(store, again, { rows: [resultRow('r', 'c1')], end: { status: 'suspended', calls: [call('c2')] } })
      const second = await store.decide(scope, { approved: true }, 'p2')
      assert.equal(second.toolCallId, 'c2')
      assert.ok(second.fence)
      const last = await begin(store, second.fence)
      assert.deepEqual((await commit(store, last, { rows: [resultRow('r2', 'c2')], ...finish })).ended, true)
      assert.deepEqual([await status(store), await states(store)], ['idle', { a: 'consumed' }])
    },
  },
  {
    name: '[R8.5] calls that waited for approval when their run was ended are in history as denied, decided or not',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      const asked = (toolCallId: string) => ({
        type: 'tool-invocation' as const, toolInvocation: { toolCallId, toolName: 't', args: {}, state: 'call' as const },
      })
      const waits = (toolCallId: string, kind: 'approval' | 'suspend') => ({ toolCallId, toolName: 't', args: {}, kind })
      const said = row('m/0', 'assistant', '', { messageId: 'm', content: { format: 2, parts: ['a', 'b', 'c', 'd'].map(asked) } })
      await commit(store, run, {
        rows: [said, resultRow('m/0/d', 'd')],
        end: { status: 'suspended', calls: [waits('a', 'approval'), waits('b', 'approval'), waits('c', 'suspend')] },
      })
      await store.decide(scope, { toolCallId: 'a', approved: true })
      const { denied } = await store.endSuspended(scope, 'run-of-a', {})
      assert.deepEqual(denied.map(({ toolCallId, toolName }) => [toolCallId, toolName]), [['a', 't'], ['b', 't']])
      const { rows } = await store.listRows(scope, { limit: 10 })
      const last = rows.at(-1)
      assert.deepEqual([last?.role, last?.messageId, last?.runId], ['tool', 'm', 'run-of-a'])
      assert.deepEqual(last?.content.parts.map(
        (part) => (part.type === 'tool-invocation' ? [part.toolInvocation.toolCallId, part.toolInvocation.state] : []),
      ), [['a', 'output-denied'], ['b', 'output-denied']])
    },
  },
]
