import assert from 'node:assert/strict'
import { childThreadId } from '../../contract/thread-row.ts'
import type { SuspendedCall, ThreadStore } from '../../contract/threads.ts'
import {
  acceptOne, begin, commit, finish, queued, rejectsWith, row, rowIds, send, start, states, status, type Begun, type StoreCase,
} from '../fixture.ts'

const top = { threadId: 'top' }
const below = (threadId: string, parentId: string) => ({ threadId, thread: { parentId } })
const own: SuspendedCall = { toolCallId: 'pay-1', toolName: 'pay', args: {}, kind: 'approval' }

/** A suspended call that stands for a call of a child run. */
function standsFor(toolCallId: string, threadId: string, childCall = 'pay-1'): SuspendedCall {
  const child = { threadId, runId: 'run-of-a', step: 0, toolCallId: childCall, toolName: 'pay' }
  return { toolCallId, toolName: 'agent-x', args: {}, kind: 'approval', child }
}

async function suspend(store: ThreadStore, run: Begun, ...calls: SuspendedCall[]) {
  return commit(store, run, {
    rows: [row(`said-${run.thread.id}`, 'assistant')], started: calls.map((call) => call.toolCallId), end: { status: 'suspended', calls },
  })
}

/** `top` called the agent on `child:top/x`, which called the one on `child:top/x/y`; all are suspended until a decision on the last. */
async function family(store: ThreadStore, ...more: SuspendedCall[]): Promise<Begun[]> {
  const runs = [
    await start(store, 'a', top),
    await start(store, 'a', below('child:top/x', 'top')),
    await start(store, 'a', below('child:top/x/y', 'child:top/x')),
  ]
  const [first, second, third] = runs as [Begun, Begun, Begun]
  await suspend(store, third, own)
  await suspend(store, second, standsFor('y', 'child:top/x/y'))
  await suspend(store, first, standsFor('x', 'child:top/x', 'y'), ...more)
  return runs
}

/** The row of a model that calls child agents. */
const asking = (id: string, ...toolCallIds: string[]) => row(id, 'assistant', id, {
  content: { format: 2, parts: toolCallIds.map((toolCallId) => ({
    type: 'tool-invocation' as const, toolInvocation: { toolCallId, toolName: 'agent-x', args: {}, state: 'call' as const },
  })) },
})

/** A send to a child thread, named after the call of the first step of `run` that makes it. */
const asked = ({ run, thread }: Begun, toolCallId: string) => {
  const id = `${run.runId}/0/${toolCallId}`
  return [id, {
    threadId: childThreadId(thread.id, toolCallId),
    thread: { parentId: thread.id },
    askedBy: { threadId: thread.id, runId: run.runId },
    runId: id,
  }] as const
}

const rejected = { end: { status: 'rejected', error: { message: 'no' } } } as const

const statuses = (store: ThreadStore) => Promise.all(['top', 'child:top/x', 'child:top/x/y'].map((threadId) => status(store, threadId)))

export const nestingCases: StoreCase[] = [
  {
    name: '[R9.2] a decision on a child thread resumes every parent run that waited for it, in the same transaction',
    async run(harness) {
      let store = await harness.store()
      const [first] = await family(store)
      assert.deepEqual(await statuses(store), ['suspended', 'suspended', 'suspended'])
      if (harness.reopen) store = await harness.reopen(store)
      const decided = await store.decide({ threadId: 'child:top/x/y' }, { approved: true }, 'p2')
      assert.deepEqual(decided.parents, ['child:top/x', 'top'])
      assert.deepEqual(await statuses(store), ['running', 'running', 'running'])
      assert.deepEqual(
        (await store.listOrphans(Date.now(), 10)).map((orphan) => orphan.threadId).filter((id) => id !== 'child:top/x/y').toSorted(),
        ['child:top/x', 'top'],
      )
      const claimed = await store.claim('top', 'p2')
      assert.ok(claimed)
      assert.equal(claimed.fence.epoch, (first?.fence.epoch ?? 0) + 1)
      const { run } = await begin(store, claimed.fence)
      assert.deepEqual([run.suspended[0]?.decision, run.attempts], [{}, 1])
    },
  },
  {
    name: '[R9.7] a decision on a parent thread decides the calls below, in the same transaction',
    async run(harness) {
      let store = await harness.store()
      await family(store)
      const decided = await store.decide({ threadId: 'child:top/x' }, { approved: false, reason: 'no', by: 'ann' }, 'p2')
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual([decided.parents, decided.children], [['top'], ['child:top/x/y']])
      assert.deepEqual(await statuses(store), ['running', 'running', 'running'])
      const decisions = await Promise.all(['top', 'child:top/x', 'child:top/x/y'].map(async (threadId) => {
        return (await store.getRun({ threadId }, 'run-of-a'))?.suspended[0]?.decision
      }))
      assert.deepEqual(decisions, [{}, {}, { approved: false, reason: 'no', by: 'ann' }])
      await rejectsWith('run_not_suspended', store.decide({ threadId: 'child:top/x/y' }, { toolCallId: 'pay-1', approved: true }, 'p2'))
    },
  },
  {
    name: '[R9.7] [R6.10] of decisions about one request on three threads at once one is stored, and each thread tells it',
    async run({ store: open }) {
      const store = await open()
      const request = { id: 'request-1', path: ['x', 'pay'], toolName: 'pay', args: {}, digest: 'd' }
      const threads = ['top', 'child:top/x', 'child:top/x/y']
      const first = await start(store, 'a', top)
      const second = await start(store, 'a', below('child:top/x', 'top'))
      const third = await start(store, 'a', below('child:top/x/y', 'child:top/x'))
      await suspend(store, third, { ...own, request })
      await suspend(store, second, { ...standsFor('y', 'child:top/x/y'), request })
      await suspend(store, first, { ...standsFor('x', 'child:top/x', 'y'), request })
      const decide = (threadId: string) => {
        return store.decide({ threadId }, { approvalId: 'request-1', approved: threadId !== 'top', by: threadId }, 'p2')
      }
      const answers = await Promise.allSettled(threads.map(decide))
      const [made, ...more] = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.made] : []))
      assert.deepEqual([more, await statuses(store)], [[], ['running', 'running', 'running']])
      for (const threadId of threads) {
        const told = await decide(threadId).catch((error: { details?: { decided?: object } }) => error.details?.decided)
        assert.deepEqual(told, { ...made, at: new Date(made?.at ?? 0).toISOString() })
      }
    },
  },
  {
    name: '[R9.8] the end of a suspended run ends the suspended runs that it called, in one transaction',
    async run({ store: open }) {
      const store = await open()
      const runs = await family(store, { ...standsFor('z', 'child:top/z') })
      // Its run has been decided: it is not suspended, and is aborted where it runs.
      const epochs = await Promise.all(runs.map(async ({ thread }) => (await store.getThread({ threadId: thread.id }))?.epoch ?? 0))
      await acceptOne(store, send('later', { ...below('child:top/x', 'top'), ...queued, runId: 'run-of-later' }))
      const { ended, children } = await store.endSuspended({ threadId: 'top' }, 'run-of-a', {})
      assert.deepEqual([ended, await statuses(store)], [true, ['idle', 'idle', 'idle']])
      assert.deepEqual(children, [
        { threadId: 'child:top/x', runId: 'run-of-a', denied: [], more: true, epoch: (epochs[1] ?? 0) + 1 },
        { threadId: 'child:top/x/y', runId: 'run-of-a', denied: [], more: false, epoch: (epochs[2] ?? 0) + 1 },
      ])
      for (const { thread, run } of runs) assert.equal((await store.getRun({ threadId: thread.id }, run.runId))?.status, 'aborted')
      await rejectsWith('run_not_suspended', store.decide({ threadId: 'child:top/x/y' }, { toolCallId: 'pay-1', approved: true }, 'p2'))
    },
  },
  {
    name: '[R9.7] [R6.10] a decision is kept on all threads that showed the request, also after their runs have ended',
    async run({ store: open }) {
      const store = await open()
      const request = { id: 'request-1', path: ['x', 'pay'], toolName: 'pay', args: {}, digest: 'd' }
      const child = ({ thread, run }: Begun, toolCallId: string) => {
        return { threadId: thread.id, runId: run.runId, step: 0, toolCallId, toolName: 'pay', approvalId: request.id }
      }
      const first = await start(store, 'a', top)
      const second = await start(store, ...asked(first, 'x/1'))
      const third = await start(store, ...asked(second, 'y'))
      await suspend(store, third, { ...own, request })
      await suspend(store, second, { ...own, toolCallId: 'y', request, child: child(third, 'pay-1') })
      await suspend(store, first, { ...own, toolCallId: 'x/1', request, child: child(second, 'y') })
      const { made } = await store.decide({ threadId: third.thread.id }, { approvalId: request.id, approved: true, by: 'ann' }, 'p2')
      for (const { thread } of [first, second]) {
        const claimed = await store.claim(thread.id, 'p2')
        assert.ok(claimed)
        await commit(store, await begin(store, claimed.fence), { end: { status: 'aborted' } })
      }
      for (const { thread } of [first, second, third]) {
        const late = store.decide({ threadId: thread.id }, { approvalId: request.id, approved: false, by: 'bob' }, 'p2')
        const told = await late.catch((error: { details?: { decided?: object } }) => error.details?.decided)
        assert.deepEqual(told, { ...made, at: new Date(made.at).toISOString() }, thread.id)
      }
    },
  },
  {
    name: '[R9.2] a run with other undecided calls stays suspended when its child is decided',
    async run({ store: open }) {
      const store = await open()
      await family(store, { ...own, toolCallId: 'pay-2' })
      assert.deepEqual((await store.decide({ threadId: 'child:top/x/y' }, { approved: true }, 'p2')).parents, ['child:top/x'])
      assert.equal(await status(store, 'top'), 'suspended')
      assert.deepEqual((await store.getRun(top, 'run-of-a'))?.suspended.map((call) => call.decision), [{}, undefined])
    },
  },
  {
    name: '[R9.2] a run does not suspend for a child that has continued already',
    async run({ store: open }) {
      const store = await open()
      const first = await start(store, 'a', top)
      await suspend(store, await start(store, 'a', below('child:top/x', 'top')), own)
      const decided = await store.decide({ threadId: 'child:top/x' }, { approved: true }, 'p2')
      assert.deepEqual(decided.parents, [], 'no parent is suspended yet')
      const { ended, more } = await suspend(store, first, standsFor('x', 'child:top/x'))
      assert.deepEqual([ended, more, await status(store, 'top')], [true, true, 'running'])
      const again = await begin(store, first.fence)
      assert.deepEqual([again.resumed, again.run.suspended[0]?.decision, again.run.started], [true, {}, []])
    },
  },
  {
    name: '[R9.5] a thread with the id of a child thread is created for its parent only',
    async run({ store: open }) {
      const store = await open()
      await start(store, 'a', top)
      const id = childThreadId('top', 'x')
      for (const parentId of [undefined, 'other', 'child:top']) {
        const thread = parentId === undefined ? {} : { parentId }
        await rejectsWith('invalid_argument', acceptOne(store, send('taken', { threadId: id, thread })))
        await rejectsWith('invalid_argument', store.createThread({ id, resourceId: 'resource-2', ...thread, now: Date.now() }))
      }
      assert.equal(await store.getThread({ threadId: id }), null)
      await start(store, 'a', below(id, 'top'))
      assert.equal((await store.getThread({ threadId: id }))?.parentId, 'top')
    },
  },
  {
    name: '[R9.3] ending a suspended child resumes its parent',
    async run({ store: open }) {
      const store = await open()
      await family(store)
      assert.deepEqual((await store.endSuspended({ threadId: 'child:top/x/y' }, 'run-of-a', {})).parents, ['child:top/x', 'top'])
      assert.deepEqual(await statuses(store), ['running', 'running', 'idle'])
    },
  },
  {
    name: '[X1.1] a thread that names a parent of another resource has no effect on it',
    async run({ store: open }) {
      const store = await open()
      const theirs = await start(store, 'a', top)
      await suspend(store, theirs, standsFor('x', 'child:top/x'))
      await suspend(store, await start(store, 'a', { ...below('child:top/x', 'top'), resourceId: 'resource-2' }), own)
      assert.deepEqual((await store.decide({ threadId: 'child:top/x' }, { approved: true }, 'p2')).parents, [])
      assert.equal(await status(store, 'top'), 'suspended')
    },
  },
  {
    name: '[R7.8] a rejected run removes what its calls caused on child threads, finished, running or pending, and nothing else',
    async run(harness) {
      let store = await harness.store()
      await start(store, 'a', below('child:top/other', 'top'))
      const before = await start(store, 'before', top)
      await commit(store, before, { rows: [asking('kept', 'kept')] })
      await commit(store, await start(store, ...asked(before, 'kept')), finish)
      await commit(store, before, finish)
      const run = await start(store, 'a', top)
      await commit(
        store, run,
        { rows: [asking('asks', 'answered', 'working', 'waiting', 'pay-1')], started: ['answered', 'working', 'waiting', 'pay-1'] },
      )
      await commit(store, await start(store, ...asked(run, 'answered')), { rows: [row('secret', 'assistant')], ...finish })
      const working = await start(store, ...asked(run, 'working'))
      await commit(store, working, { rows: [asking('asks-on', 'deeper')] })
      const deeper = await start(store, ...asked(working, 'deeper'))
      await suspend(store, await start(store, ...asked(run, 'waiting')), own)
      const { gone = [] } = await commit(store, run, rejected)
      assert.deepEqual(gone.toSorted(), ['child:top/answered', 'child:top/waiting', 'child:top/working', 'child:top/working/deeper'])
      if (harness.reopen) store = await harness.reopen(store)
      for (const threadId of gone) assert.equal(await store.getThread({ threadId }), null, threadId)
      assert.deepEqual(await rowIds(store, 'top'), ['before', 'kept'])
      assert.deepEqual([await status(store, 'child:top/kept'), await status(store, 'child:top/other')], ['idle', 'running'])
      for (const late of [working, deeper]) await rejectsWith(
        'fenced', commit(store, late, { rows: [row('late', 'assistant')], ...finish }),
      )
      await rejectsWith('no_active_run', acceptOne(store, send(...asked(run, 'answered'))))
      assert.equal(await store.getThread({ threadId: 'child:top/answered' }), null)
    },
  },
  {
    name: '[R7.8] a child thread that answered earlier calls of the same name keeps those',
    async run(harness) {
      let store = await harness.store()
      const first = await start(store, 'first', top)
      await commit(store, first, { rows: [asking('asks-1', 'x')] })
      await commit(store, await start(store, ...asked(first, 'x')), { rows: [row('answer-1', 'assistant')], ...finish })
      await commit(store, first, finish)
      const run = await start(store, 'second', top)
      await commit(store, run, { rows: [asking('asks-2', 'x')] })
      const working = await start(store, ...asked(run, 'x'))
      await commit(store, working, { rows: [asking('asks-on', 'y')] })
      await start(store, ...asked(working, 'y'))
      await acceptOne(store, send('waits', { threadId: 'child:top/x', mode: 'queue' }))
      assert.deepEqual((await commit(store, run, rejected)).gone, ['child:top/x/y'])
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual(await rowIds(store, 'child:top/x'), ['run-of-first/0/x', 'answer-1'])
      assert.deepEqual(await states(store, 'child:top/x'), {
        'run-of-first/0/x': 'consumed', 'run-of-second/0/x': 'rejected', waits: 'pending',
      })
      await rejectsWith('fenced', commit(store, working, { rows: [row('late', 'assistant')], ...finish }))
      assert.equal((await store.getRun({ threadId: 'child:top/x' }, 'run-of-second/0/x'))?.status, 'rejected')
      assert.deepEqual((await store.listOrphans(Date.now(), 10)).map(({ threadId }) => threadId), ['child:top/x'])
    },
  },
]
