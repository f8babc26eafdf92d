import assert from 'node:assert/strict'
import type { StepCommit, ThreadStore, WorkflowCommit } from '../../contract/threads.ts'
import { workflowRunner, workflowThreadId } from '../../contract/thread-row.ts'
import { acceptOne, commit, rejectsWith, resourceId, send, start, type Begun, type StoreCase } from '../fixture.ts'

const order = (runId: string) => ({ threadId: workflowThreadId('order', runId), thread: { parentId: workflowRunner('order') } })

const begin = (store: ThreadStore, runId: string): Promise<Begun> => start(store, runId, order(runId))

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
]
