import assert from 'node:assert/strict'
import type { Send, ThreadStore } from '../../contract/threads.ts'
import {
  accept, acceptOne, commit, everything, finish, persisted, queued, rejectsWith, resourceId, row, send, signalRow, start, threadId, tick,
  type StoreCase, type StoreWriterCase,
} from '../fixture.ts'
import { answerOr, rounds } from '../writers/race.ts'

const long = 'x'.repeat(2_000)
const text = (value: string) => ({ format: 2 as const, parts: [{ type: 'text' as const, text: value }] })
const longSend = (id: string, more: Partial<Send> = {}) => send(id, { rows: [{ ...signalRow(id), content: text(long) }], ...more })

/** What is counted, and what a quota rejects. */
export const usageCases: StoreCase[] = [
  {
    name: '[H7.7] threads and bytes are counted with each write and removal, for their resource and in all',
    async run(harness) {
      const store = await harness.store()
      const empty = await store.getUsage()
      assert.deepEqual(await store.getUsage('nobody'), { threads: 0, bytes: 0 })
      await acceptOne(store, longSend('a', persisted))
      const one = await store.getUsage(resourceId)
      assert.equal(one.threads, 1)
      assert.ok(one.bytes >= 2_000 && one.bytes < 2_500, `${one.bytes}`)
      await acceptOne(store, longSend('b', { ...persisted, threadId: 'thread-2', resourceId: 'resource-2' }))
      const all = await store.getUsage()
      assert.deepEqual([all.threads - empty.threads, all.bytes - empty.bytes > 4_000], [2, true])
      assert.deepEqual(await store.getUsage(resourceId), one)
      await store.transferThread({ threadId: 'thread-2' }, resourceId)
      assert.deepEqual([(await store.getUsage(resourceId)).threads, await store.getUsage('resource-2')], [2, { threads: 0, bytes: 0 }])
      await store.deleteMessages({ threadId }, ['a'])
      await store.deleteThread({ threadId: 'thread-2' })
      const { threads, bytes } = await store.getUsage(resourceId)
      assert.ok(threads === 1 && bytes < 100, `${threads} ${bytes}`)
      await store.deleteThread({ threadId })
      assert.deepEqual([await store.getUsage(resourceId), await store.getUsage()], [{ threads: 0, bytes: 0 }, empty])
    },
  },
  {
    name: '[H7.7] what a run writes, a clone copies and a signal waits with is counted; after a restart the numbers are the same',
    async run(harness) {
      let store = await harness.store()
      const begun = await start(store)
      const before = (await store.getUsage(resourceId)).bytes
      await acceptOne(store, longSend('waiting', queued))
      const waiting = (await store.getUsage(resourceId)).bytes
      assert.ok(waiting - before >= 2_000, 'a pending signal is counted')
      await commit(store, begun, { ...finish, rows: [row('r', 'assistant', long)] })
      const after = (await store.getUsage(resourceId)).bytes
      assert.ok(after - waiting >= 2_000, 'the output of a run is counted')
      await store.cloneThread({ threadId }, { id: 'copy', metadata: {}, now: tick() })
      const cloned = await store.getUsage(resourceId)
      assert.ok(cloned.threads === 2 && cloned.bytes - after >= 2_000, 'a copy is counted')
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual(await store.getUsage(resourceId), cloned)
    },
  },
  {
    name: '[H7.7] a write that exceeds its quota is rejected and stores nothing; one within it, and one that makes less, is not',
    async run(harness) {
      const store = await harness.store()
      const quota = { resource: { threads: 1, bytes: 3_000 } }
      await acceptOne(store, longSend('a', { ...persisted, quota }))
      const stored = await everything(store)
      await rejectsWith('quota_exceeded', acceptOne(store, longSend('b', { ...persisted, quota })))
      await rejectsWith('quota_exceeded', acceptOne(store, send('c', { ...persisted, threadId: 'thread-2', quota })))
      await rejectsWith('quota_exceeded', store.createThread({ id: 'thread-2', resourceId, quota, now: tick() }))
      await rejectsWith('quota_exceeded', store.cloneThread({ threadId }, { id: 'copy', metadata: {}, quota, now: tick() }))
      await rejectsWith('quota_exceeded', store.patchThread({ threadId }, { metadata: { long }, quota }))
      const message = { id: 'm', role: 'user' as const, createdAt: new Date(tick()), threadId, resourceId, content: text(long) }
      await rejectsWith('quota_exceeded', store.saveMessages([{ scope: { threadId, resourceId }, messages: [message], quota }]))
      await rejectsWith('quota_exceeded', store.transferThread({ threadId }, 'resource-2', { resource: { threads: 0 } }))
      assert.deepEqual(await everything(store), stored)
      assert.equal(await store.getThread({ threadId: 'thread-2' }), null)
      await acceptOne(store, send('d', { ...persisted, quota }))
      const smaller = { id: 'a', content: text('x') }
      await store.updateMessages([{ scope: { threadId }, patches: [smaller], quota: { resource: { bytes: 1 } } }])
      await rejectsWith('quota_exceeded', acceptOne(store, send('e', { ...persisted, quota: { all: { threads: 0, bytes: 0 } } })))
      // An agent calls another agent: its child thread is counted, and not rejected.
      await acceptOne(store, send('f', { ...persisted, threadId: 'thread-1/child', thread: { parentId: threadId }, quota }))
    },
  },
  {
    name: '[H7.7] sends of one transaction do not exceed a quota together',
    async run(harness) {
      const store = await harness.store()
      const quota = { resource: { threads: 2, bytes: 5_000 } }
      const five = (make: (index: number) => Send) => Array.from({ length: 5 }, (_, index) => make(index))
      const answers = await store.accept(five((index) => longSend(`s${index}`, { threadId: `t${index}`, quota })))
      assert.equal(answers.filter((answer) => 'error' in answer).length, 3)
      const one = { threadId: 'one', resourceId: 'resource-2', quota }
      const ofBytes = await store.accept(five((index) => longSend(`b${index}`, one)))
      assert.equal(ofBytes.filter((answer) => 'error' in answer).length, 3)
    },
  },
]

/** The same with two connections. */
export const usageWriterCases: StoreWriterCase[] = [
  {
    name: '[H7.7] [R1.6] two writers do not exceed a quota together',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const of = `resource-${nth}`
      const quota = { resource: { threads: 3 } }
      const create = async (store: ThreadStore, name: string) => {
        for (let index = 0; index < 4; index += 1)
          await answerOr(store.createThread({ id: `${name}-${nth}-${index}`, resourceId: of, quota, now: tick() }), 'quota_exceeded')
      }
      const sends = async (store: ThreadStore, name: string) => {
        for (let index = 0; index < 4; index += 1) {
          const to = { ...persisted, threadId: `${name}-${nth}-s${index}`, resourceId: of, quota }
          await answerOr(accept(store, send(`${name}${index}`, to)), 'quota_exceeded')
        }
      }
      await together(() => create(one, 'a'), () => sends(two, 'b'))
      assert.deepEqual((await two.listThreads({ resourceId: of, limit: 100 })).threads.length, 3)
      assert.equal((await one.getUsage(of)).threads, 3)
    }),
  },
]
