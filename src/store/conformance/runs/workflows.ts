import assert from 'node:assert/strict'
import type { StepCommit, ThreadStore, WorkflowCommit } from '../../contract/threads.ts'
import { childThreadId, workflowRunner, workflowThreadId } from '../../contract/thread-row.ts'
import { acceptOne, alive, commit, rejectsWith, resourceId, row, send, start, type Begun, type StoreCase } from '../fixture.ts'

const order = (runId: string) => ({ threadId: workflowThreadId('order', runId), thread: { parentId: workflowRunner('order') } })

const begin = (store: ThreadStore, runId: string): Promise<Begun> => start(store, runId, order(runId))

/** The same for a run whose signals are those of its workflow. */
async function beginOwn(store: ThreadStore, runId: string): Promise<Begun> {
  await alive(store, 'p1')
  const agentId = workflowRunner('order')
  const { fence } = await acceptOne(store, send(runId, { ...order(runId), agentId }))
  const begun = fence && (await store.beginRun(fence, new Map([[agentId, false]])))
  assert.ok(begun, 'a send to an idle thread begins its run')
  return { ...begun, fence }
}

function recorded(runId: string, status: string, steps: Record<string, unknown> = {}): WorkflowCommit {
  const rows = Object.entries(steps).map(([path, output]) => ({ path, row: { path, output: output as string } }))
  return { workflowId: 'order', runId, status, head: { state: {} }, steps: rows }
}

const record = (store: ThreadStore, run: Begun, workflow: WorkflowCommit, more: Partial<StepCommit> = {}) =>
  commit(store, run, { workflow, drain: true, ...more })

const finished = { end: { status: 'finished' } } as const

/** Runs of workflows: a record beside the thread, and a row for each step. */
export const workflowCases: StoreCase[] = [
  {
    name: '[F4.8] a commit stores the rows of steps by their paths, and replaces only those that it names',
    async run({ store: open }) {
      const store = await open()
      const run = await begin(store, 'r1')
      const scope = { threadId: run.thread.id }
      assert.equal(await store.getWorkflowRun(scope), null)
      await record(store, run, { ...recorded('r1', 'running', { 0: 'a', 1: 'b' }), input: { n: 1 } })
      await record(store, run, { ...recorded('r1', 'suspended', { 1: 'c', '2[0]': 'd' }), input: { n: 2 }, head: { state: { x: 1 } } })
      const { steps, status, input, head } = (await store.getWorkflowRun(scope)) ?? assert.fail('no run')
      const outputs = Object.fromEntries(steps.map(({ path, output }) => [String(path), output]))
      assert.deepEqual(outputs, { 0: 'a', 1: 'c', '2[0]': 'd' })
      assert.deepEqual([status, input, head], ['suspended', { n: 1 }, { state: { x: 1 } }])
      assert.equal(await store.getWorkflowRun({ threadId: 'other' }), null)
      await rejectsWith('thread_forbidden', store.getWorkflowRun({ ...scope, resourceId: 'other' }))
    },
  },
  {
    name: '[F4.8] a commit with a stale fence stores no row of a step',
    async run({ store: open }) {
      const store = await open()
      const run = await begin(store, 'r1')
      await record(store, run, recorded('r1', 'running', { 0: 'a' }))
      const stale = { ...run, fence: { ...run.fence, epoch: run.fence.epoch - 1 } }
      await rejectsWith('fenced', record(store, stale, recorded('r1', 'success', { 0: 'z' })))
      assert.deepEqual((await store.getWorkflowRun({ threadId: run.thread.id }))?.steps.map(({ output }) => output), ['a'])
    },
  },
  {
    name: '[F4.5] runs are listed by workflow, resource and status, the newest first, and go with their threads',
    async run({ store: open }) {
      const store = await open()
      for (const runId of ['r1', 'r2', 'r3']) {
        const run = await begin(store, runId)
        await record(store, run, recorded(runId, runId === 'r2' ? 'suspended' : 'success', { 0: 'a' }), finished)
      }
      const ids = async (query: Partial<Parameters<ThreadStore['listWorkflowRuns']>[0]>) =>
        (await store.listWorkflowRuns({ workflowId: 'order', limit: 10, ...query })).runs.map(({ runId }) => runId)
      assert.deepEqual(await ids({}), ['r3', 'r2', 'r1'])
      assert.deepEqual(await ids({ status: ['suspended'] }), ['r2'])
      assert.deepEqual(await ids({ resourceId }), ['r3', 'r2', 'r1'])
      assert.deepEqual(await ids({ resourceId: 'other' }), [])
      assert.deepEqual(await ids({ workflowId: 'other' }), [])
      const page = await store.listWorkflowRuns({ workflowId: 'order', limit: 1, offset: 1 })
      assert.deepEqual([page.total, page.runs.map(({ runId }) => runId)], [3, ['r2']])
      assert.equal(await store.deleteThread({ threadId: workflowThreadId('order', 'r2') }), true)
      assert.deepEqual(await ids({}), ['r3', 'r1'])
      assert.deepEqual((await store.listThreads({ parentId: null, limit: 10 })).threads, [])
    },
  },
  {
    name: '[F4.8] an id of a thread that a run of a workflow may have is for no other thread',
    async run({ store: open }) {
      const store = await open()
      const id = workflowThreadId('order', 'r1')
      await rejectsWith('invalid_argument', store.createThread({ id, resourceId, now: 1 }))
      await rejectsWith('invalid_argument', acceptOne(store, send('a', { threadId: id })))
      await acceptOne(store, send('start', { ...order('r1'), agentId: workflowRunner('order') }))
      await rejectsWith('invalid_argument', acceptOne(store, send('a', { threadId: id })))
      assert.equal((await acceptOne(store, send('b', { ...order('r1'), agentId: workflowRunner('order') }))).duplicate, false)
    },
  },
  {
    name: '[F5.7] a decision about a call of an agent in a step is a signal to the run, in the same transaction; so is the end of its run',
    async run(harness) {
      let store = await harness.store()
      const told = async (threadId: string) =>
        (await store.listSignals({ threadId }, { states: ['pending'] })).map(({ options }) => options)
      for (const [runId, rests] of [['r1', true], ['r2', false]] as const) {
        const run = await beginOwn(store, runId)
        const threadId = run.thread.id
        const child = childThreadId(threadId, '1')
        const agent = await start(store, 'a', { threadId: child, thread: { parentId: threadId } })
        const calls = ['pay-1', 'pay-2'].map((toolCallId) => ({ toolCallId, toolName: 'pay', args: {}, kind: 'approval' as const }))
        await commit(store, agent, { rows: [row('said', 'assistant')], end: { status: 'suspended', calls } })
        if (rests) await record(store, run, recorded(runId, 'suspended', { 1: 'a' }), finished)
        const { parents } = await store.decide({ threadId: child }, { toolCallId: 'pay-1', approved: true }, 'p2')
        const ended = await store.endSuspended({ threadId: child }, agent.run.runId, {})
        assert.deepEqual([parents, ended.parents], [[threadId], [threadId]])
        if (harness.reopen) store = await harness.reopen(store)
        const decided = { threadId: child, runId: agent.run.runId }
        const signals = [{ workflow: { decided: { ...decided, toolCallId: 'pay-1' } } }, { workflow: { decided } }]
        assert.deepEqual(await told(threadId), signals)
        // A run that rests is due for any process; one that works takes them with its next commit.
        const due = (await store.listOrphans(Date.now(), 10, [workflowRunner('order')])).map((orphan) => orphan.threadId)
        assert.equal(due.includes(threadId), rests)
        if (rests) continue
        const { taken } = await record(store, run, recorded(runId, 'running', { 2: 'b' }))
        assert.equal(taken.length, 2)
      }
    },
  },
  {
    name: '[F4.11] what a run records counts towards the bytes of its resource, once where a row is replaced, and goes with the run',
    async run(harness) {
      let store = await harness.store()
      const bytes = async () => (await store.getUsage(resourceId)).bytes
      const run = await begin(store, 'r1')
      const before = await bytes()
      const long = 'x'.repeat(2_000)
      await record(store, run, { ...recorded('r1', 'running', { 0: long, 1: 'short' }), input: { long } })
      const first = await bytes()
      assert.ok(first - before >= 4_000 && first - before < 4_500, `${first - before}`)
      await record(store, run, { ...recorded('r1', 'running', { 0: long, 1: long }), head: { state: { long } } })
      const second = await bytes()
      assert.ok(second - first >= 4_000 && second - first < 4_500, `${second - first}`)
      await record(store, run, { ...recorded('r1', 'success', { 1: 'short' }), head: { state: {} } }, finished)
      assert.ok((await bytes()) - first < 500, 'a row that became short counts as it is')
      if (harness.reopen) store = await harness.reopen(store)
      assert.ok((await bytes()) - first < 500)
      await store.deleteThread({ threadId: run.thread.id })
      assert.equal(await bytes(), 0)
    },
  },
]
