import assert from 'node:assert/strict'
import type { SuspendedCall, ThreadStore } from '../contract.ts'
import type { StoreCase } from './case.ts'
import { begin, commit, row, start, status, type Begun } from './fixture.ts'

const top = { threadId: 'top' }
const below = (threadId: string, parentId: string) => ({ threadId, thread: { parentId } })
const own: SuspendedCall = { toolCallId: 'pay-1', toolName: 'pay', args: {}, kind: 'approval' }

/** A call that waits for the call of a run below it. */
function standsFor(toolCallId: string, threadId: string, childCall = 'pay-1'): SuspendedCall {
  const child = { threadId, runId: 'run-of-a', step: 0, toolCallId: childCall, toolName: 'pay' }
  return { toolCallId, toolName: 'agent-x', args: {}, kind: 'approval', child }
}

async function suspend(store: ThreadStore, run: Begun, ...calls: SuspendedCall[]) {
  return commit(store, run, { rows: [row(`said-${run.thread.id}`, 'assistant')], started: calls.map((call) => call.toolCallId), end: { status: 'suspended', calls } })
}

/** `top` asked the agent on `top/x`, which asked the one on `top/x/y`; all of them wait for the last. */
async function family(store: ThreadStore, ...more: SuspendedCall[]): Promise<Begun[]> {
  const runs = [await start(store, 'a', top), await start(store, 'a', below('top/x', 'top')), await start(store, 'a', below('top/x/y', 'top/x'))]
  const [first, second, third] = runs as [Begun, Begun, Begun]
  await suspend(store, third, own)
  await suspend(store, second, standsFor('y', 'top/x/y'))
  await suspend(store, first, standsFor('x', 'top/x', 'y'), ...more)
  return runs
}

const statuses = (store: ThreadStore) => Promise.all(['top', 'top/x', 'top/x/y'].map((threadId) => status(store, threadId)))

export const nestingCases: StoreCase[] = [
  {
    name: '[R9.2] a decision below lets every run above go on that waited for it, in the same transaction',
    async run(harness) {
      let store = await harness.store()
      const [first] = await family(store)
      assert.deepEqual(await statuses(store), ['suspended', 'suspended', 'suspended'])
      if (harness.reopen) store = await harness.reopen(store)
      const decided = await store.decide({ threadId: 'top/x/y' }, { approved: true }, 'p2')
      assert.deepEqual(decided.parents, ['top/x', 'top'])
      assert.deepEqual(await statuses(store), ['running', 'running', 'running'])
      assert.deepEqual((await store.listOrphans(Date.now(), 10)).map((orphan) => orphan.threadId).filter((id) => id !== 'top/x/y').toSorted(), ['top', 'top/x'])
      const claimed = await store.claim('top', 'p2')
      assert.ok(claimed)
      assert.equal(claimed.fence.epoch, (first?.fence.epoch ?? 0) + 1)
      const { run } = await begin(store, claimed.fence)
      assert.deepEqual([run.suspended[0]?.decision, run.attempts], [{}, 1])
    },
  },
  {
    name: '[R9.2] a decision above leaves what is below to whoever hands it on',
    async run({ store: open }) {
      const store = await open()
      await family(store)
      const decided = await store.decide(top, { approved: false, reason: 'no' }, 'p2')
      assert.deepEqual([decided.parents, await statuses(store)], [[], ['running', 'suspended', 'suspended']])
      const handed = await store.decide({ threadId: 'top/x' }, { runId: 'run-of-a', step: 0, toolCallId: 'y', approved: false }, 'p2')
      assert.deepEqual([handed.parents, await statuses(store)], [[], ['running', 'running', 'suspended']])
    },
  },
  {
    name: '[R9.2] a run that waits for more than its child goes on waiting',
    async run({ store: open }) {
      const store = await open()
      await family(store, { ...own, toolCallId: 'pay-2' })
      assert.deepEqual((await store.decide({ threadId: 'top/x/y' }, { approved: true }, 'p2')).parents, ['top/x'])
      assert.equal(await status(store, 'top'), 'suspended')
      assert.deepEqual((await store.getRun(top, 'run-of-a'))?.suspended.map((call) => call.decision), [{}, undefined])
    },
  },
  {
    name: '[R9.2] a run does not wait for a child that went on before it could wait',
    async run({ store: open }) {
      const store = await open()
      const first = await start(store, 'a', top)
      await suspend(store, await start(store, 'a', below('top/x', 'top')), own)
      assert.deepEqual((await store.decide({ threadId: 'top/x' }, { approved: true }, 'p2')).parents, [], 'nobody waits yet')
      const { ended, more } = await suspend(store, first, standsFor('x', 'top/x'))
      assert.deepEqual([ended, more, await status(store, 'top')], [true, true, 'running'])
      const again = await begin(store, first.fence)
      assert.deepEqual([again.resumed, again.run.suspended[0]?.decision, again.run.started], [true, {}, ['x']])
    },
  },
  {
    name: '[R9.3] a suspended child that is ended lets its parent go on',
    async run({ store: open }) {
      const store = await open()
      await family(store)
      assert.deepEqual((await store.endSuspended({ threadId: 'top/x/y' }, 'run-of-a', {})).parents, ['top/x', 'top'])
      assert.deepEqual(await statuses(store), ['running', 'running', 'idle'])
    },
  },
  {
    name: '[X1.1] a thread that calls itself a child of another resource\'s moves nothing there',
    async run({ store: open }) {
      const store = await open()
      const theirs = await start(store, 'a', top)
      await suspend(store, theirs, standsFor('x', 'top/x'))
      await suspend(store, await start(store, 'a', { ...below('top/x', 'top'), resourceId: 'resource-2' }), own)
      assert.deepEqual((await store.decide({ threadId: 'top/x' }, { approved: true }, 'p2')).parents, [])
      assert.equal(await status(store, 'top'), 'suspended')
    },
  },
]
