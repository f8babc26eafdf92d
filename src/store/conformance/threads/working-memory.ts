import assert from 'node:assert/strict'
import type { JSONObject } from '../../../base/json.ts'
import type { ThreadStore, WorkingMemoryChange, WorkingMemoryOf, WorkingMemoryWriter } from '../../contract/threads.ts'
import {
  acceptOne, commit, finish, rejectsWith, resourceId, row, scope, send, start, threadId, type Begun, type StoreCase,
} from '../fixture.ts'

const ofResource: WorkingMemoryOf = { scope: 'resource', resourceId }
const ofThread: WorkingMemoryOf = { scope: 'thread', ...scope }
const rejected = { end: { status: 'rejected', error: { message: 'no' } } } as const

async function value(store: ThreadStore, of = ofResource): Promise<unknown> {
  return (await store.getWorkingMemory(of))?.value
}

const merge = (fields: JSONObject, more: Partial<WorkingMemoryChange> = {}): WorkingMemoryChange => ({ ...more, merge: fields })
const by = ({ fence, run }: Begun, staged = true): WorkingMemoryWriter => ({ fence, runId: run.runId, staged })

export const workingMemoryCases: StoreCase[] = [
  {
    name: '[M2.1] working memory: objects merge deeply, null and paths remove, arrays and texts replace',
    async run(harness) {
      let store = await harness.store()
      assert.equal(await store.getWorkingMemory(ofResource), null)
      await store.mergeWorkingMemory(ofResource, merge({ name: 'Sam', prefs: { tone: 'dry', goals: ['a', 'b'] }, city: 'Berlin' }))
      await store.mergeWorkingMemory(ofResource, merge({ prefs: { goals: ['c'] }, city: null, never: null, deep: { never: null } }))
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual(await value(store), { name: 'Sam', prefs: { tone: 'dry', goals: ['c'] }, deep: {} })
      const row = await store.mergeWorkingMemory(ofResource, { merge: {}, remove: [['prefs', 'tone'], ['not', 'there'], ['name']] })
      assert.deepEqual([row.version, row.value], [3, { prefs: { goals: ['c'] }, deep: {} }])
      await store.mergeWorkingMemory(ofResource, { set: '# Profile' })
      assert.equal(await value(store), '# Profile')
      await store.mergeWorkingMemory(ofResource, merge({ name: 'Ada' }))
      assert.deepEqual(await value(store), { name: 'Ada' })
    },
  },
  {
    name: '[M2.1] working memory: keys such as __proto__ are stored like others',
    async run({ store: open }) {
      const store = await open()
      const strange = JSON.parse('{"__proto__":{"a":1},"constructor":"x","toString":null}') as JSONObject
      await store.mergeWorkingMemory(ofResource, merge(strange))
      assert.equal(JSON.stringify(await value(store)), '{"__proto__":{"a":1},"constructor":"x"}')
      assert.equal(({} as { a?: number }).a, undefined)
    },
  },
  {
    name: '[M2.2] working memory: fifty concurrent merges keep every field, each with its own version',
    async run({ store: open }) {
      const store = await open()
      const rows = await Promise.all(
        Array.from({ length: 50 }, (_, index) => store.mergeWorkingMemory(ofResource, merge({ [`f${index}`]: index }))),
      )
      assert.equal(Object.keys((await value(store)) as object).length, 50)
      assert.deepEqual(rows.map(({ version }) => version).toSorted((a, b) => a - b), Array.from({ length: 50 }, (_, index) => index + 1))
    },
  },
  {
    name: '[M2.3] working memory: of two changes that expect the same version one is rejected, and nothing of it is written',
    async run({ store: open }) {
      const store = await open()
      await store.mergeWorkingMemory(ofResource, merge({ a: 1 }, { expectedVersion: 0 }))
      const both = await Promise.allSettled([2, 3].map((a) => store.mergeWorkingMemory(ofResource, merge({ a }, { expectedVersion: 1 }))))
      assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
      await rejectsWith('working_memory_conflict', store.mergeWorkingMemory(ofResource, { set: 'x', expectedVersion: 7 }))
      assert.equal((await store.getWorkingMemory(ofResource))?.version, 2)
    },
  },
  {
    name: '[M2.4] working memory: versions are listed and restored, a hundred are kept; a repeated change or one without effect adds none',
    async run(harness) {
      let store = await harness.store()
      for (let n = 1; n <= 3; n++) await store.mergeWorkingMemory(ofResource, { id: `c${n}`, set: `v${n}` })
      assert.equal((await store.mergeWorkingMemory(ofResource, { id: 'c1', set: 'v1' })).version, 3)
      assert.equal((await store.mergeWorkingMemory(ofResource, { set: 'v3' })).version, 3)
      assert.deepEqual((await store.listWorkingMemory(ofResource, { limit: 2 })).map(({ value: at }) => at), ['v3', 'v2'])
      assert.deepEqual((await store.listWorkingMemory(ofResource, { limit: 2, before: 2 })).map(({ version }) => version), [1])
      const undone = await store.mergeWorkingMemory(ofResource, { restore: 'previous' })
      assert.deepEqual([undone.version, undone.value], [4, 'v2'])
      assert.equal((await store.mergeWorkingMemory(ofResource, { restore: 1 })).value, 'v1')
      assert.equal((await store.mergeWorkingMemory(ofResource, { restore: 0 })).value, '')
      await rejectsWith('working_memory_version_gone', store.mergeWorkingMemory(ofResource, { restore: 77 }))
      await rejectsWith(
        'working_memory_version_gone',
        store.mergeWorkingMemory({ scope: 'thread', threadId: await created(store, 'fresh') }, { restore: 'previous' }),
      )
      for (let n = 0; n < 110; n++) await store.mergeWorkingMemory(ofResource, { set: `w${n}` })
      if (harness.reopen) store = await harness.reopen(store)
      const kept = await store.listWorkingMemory(ofResource, { limit: 1_000 })
      assert.deepEqual([kept.length, kept[0]?.value, kept[0]?.version], [100, 'w109', 116])
      await rejectsWith('working_memory_version_gone', store.mergeWorkingMemory(ofResource, { restore: 1 }))
    },
  },
  {
    name: '[M2.5] working memory: a change above the maximum length is rejected without effect',
    async run({ store: open }) {
      const store = await open()
      await store.mergeWorkingMemory(ofResource, { set: '12345', maxLength: 5 })
      await rejectsWith('working_memory_too_large', store.mergeWorkingMemory(ofResource, { set: '123456', maxLength: 5 }))
      await rejectsWith('working_memory_too_large', store.mergeWorkingMemory(ofResource, merge({ abc: 'def' }, { maxLength: 12 })))
      const workingMemory = { scope: 'resource', change: { set: '123456', maxLength: 5 } } as const
      await rejectsWith('working_memory_too_large', store.createThread({ id: threadId, resourceId, workingMemory, now: 1 }))
      assert.equal(await store.getThread(scope), null)
      await store.createThread({ id: threadId, resourceId, now: 1 })
      await rejectsWith('working_memory_too_large', store.patchThread(scope, { title: 'Other', workingMemory }))
      assert.equal((await store.getThread(scope))?.title, '')
      assert.deepEqual([await value(store), (await store.listWorkingMemory(ofResource, { limit: 9 })).length], ['12345', 1])
    },
  },
  {
    name: '[M2.6] working memory: a resource and its threads have their own; another resource is rejected; it is deleted with its thread',
    async run({ store: open }) {
      const store = await open()
      await created(store, threadId)
      await rejectsWith('thread_not_found', store.mergeWorkingMemory({ scope: 'thread', threadId: 'none' }, { set: 'x' }))
      await store.mergeWorkingMemory(ofResource, { set: 'of the resource' })
      await store.mergeWorkingMemory(ofThread, { set: 'of the thread' })
      assert.deepEqual(
        [await value(store), await value(store, ofThread), await value(store, { scope: 'resource', resourceId: threadId })],
        ['of the resource', 'of the thread', undefined],
      )
      const foreign: WorkingMemoryOf = { scope: 'thread', threadId, resourceId: 'resource-2' }
      await rejectsWith('thread_forbidden', store.getWorkingMemory(foreign))
      await rejectsWith('thread_forbidden', store.mergeWorkingMemory(foreign, { set: 'x' }))
      await rejectsWith('thread_forbidden', store.listWorkingMemory(foreign, { limit: 1 }))
      await store.deleteThread(scope)
      await created(store, threadId)
      assert.deepEqual([await value(store, ofThread), await value(store)], [undefined, 'of the resource'])
    },
  },
  {
    name: '[M2.7] working memory: staged changes are visible to their run alone, take effect when it ends, and never if it is rejected',
    async run(harness) {
      let store = await harness.store()
      await store.mergeWorkingMemory(ofResource, merge({ a: 0 }))
      const refused = await start(store, 'a')
      const staged = await store.mergeWorkingMemory(ofResource, merge({ a: 1 }, { id: 'call-1' }), by(refused))
      assert.deepEqual([staged.version, staged.value], [2, { a: 1 }])
      assert.equal((await store.mergeWorkingMemory(ofResource, merge({ a: 1 }, { id: 'call-1' }), by(refused))).version, 2)
      assert.deepEqual((await store.getWorkingMemory(ofResource, { threadId, runId: refused.run.runId }))?.value, { a: 1 })
      assert.deepEqual(await value(store), { a: 0 })
      await commit(store, refused, rejected)
      assert.deepEqual(await value(store), { a: 0 })

      const run = await start(store, 'b')
      await store.mergeWorkingMemory(ofResource, merge({ a: 2 }), by(run))
      await store.mergeWorkingMemory(ofResource, merge({ b: 3 }))
      if (harness.reopen) store = await harness.reopen(store)
      await commit(store, run, { rows: [row('said', 'assistant')], ...finish })
      assert.deepEqual(await value(store), { a: 2, b: 3 })
    },
  },
  {
    name: '[M2.7] working memory: new input seals the changes that a run staged before it',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a')
      await store.mergeWorkingMemory(ofResource, merge({ a: 1 }), by(run))
      await acceptOne(store, send('b'))
      await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
      await store.mergeWorkingMemory(ofResource, merge({ b: 1 }), by(run))
      await commit(store, run, { step: 1, ...rejected })
      assert.deepEqual(await value(store), { a: 1 })
    },
  },
  {
    name: '[M2.8] working memory: a run that lost its lease changes nothing, staged or not',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a')
      await store.resign('p1')
      assert.ok(await store.claim(threadId, 'p2'))
      for (const staged of [true, false]) await rejectsWith('fenced', store.mergeWorkingMemory(ofResource, { set: 'x' }, by(run, staged)))
      assert.equal(await value(store), undefined)
    },
  },
]

async function created(store: ThreadStore, id: string): Promise<string> {
  return (await store.createThread({ id, resourceId, now: 1 })).thread.id
}
