import assert from 'node:assert/strict'
import type { Accepted, Send, ThreadStore } from '../../contract/threads.ts'
import type { StoreCase } from '../case.ts'
import { acceptOne, commit, everything, finish, persisted, queued, refuses, row, rowIds, scope, send, start, windows } from '../fixture.ts'

/** A signal as it comes from outside, under an id that its sender chose. */
function sentRow(id: string, text = id) {
  return row(id, 'signal', text, { type: 'user', content: { format: 2, parts: [{ type: 'text', text }], metadata: { signal: { id, type: 'user', tagName: 'user', acceptedAt: '2026-01-01T00:00:00.000Z' } } } })
}

function named(id: string, more: Partial<Send> = {}): Send {
  return send(id, { rows: [sentRow(id)], given: [id], ...more })
}

/** What `generate()` is asked: a turn that its process waits for. */
function call(id: string, rows: Send['rows'], more: Partial<Send> = {}): Send {
  return send(id, { ...queued, rows, given: rows.map((one) => one.id), boundTo: 'p1', ...more })
}

async function refused(store: ThreadStore, one: Send): Promise<void> {
  const before = await everything(store)
  const [answer] = await store.accept([one])
  assert.ok(answer && 'error' in answer, `${one.id} is refused`)
  await refuses('id_taken', Promise.reject(answer.error))
  assert.deepEqual(await everything(store), before)
}

async function answered(store: ThreadStore, ...ids: string[]): Promise<void> {
  for (const id of ids) await commit(store, await start(store, id, { rows: [sentRow(id)] }), { rows: [row(`${id}/0`, 'assistant', 'said', { messageId: `of-${id}` })], ...finish })
}

export const givenIdCases: StoreCase[] = [
  {
    name: '[A2.4] a send under the id of a message, of an answer or of a part of it is refused and writes nothing',
    async run({ store: open }) {
      const store = await open()
      await answered(store, 'a')
      await store.saveMessages([{ scope, messages: [{ ...row('saved'), id: 'saved', role: 'user' }] }])
      for (const id of ['saved', 'of-a', 'a/0']) {
        for (const more of [{}, queued, persisted]) await refused(store, named(id, more))
      }
      const run = await start(store, 'b')
      for (const id of ['saved', 'of-a', 'b']) {
        if (id === 'b') assert.equal((await acceptOne(store, named(id))).duplicate, true)
        else await refused(store, named(id))
      }
      await commit(store, run, finish)
    },
  },
  {
    name: '[A2.4] what a call brings has its ids from when the call is accepted',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await acceptOne(store, call('call', [row('asked')]))
      for (const more of [{}, queued, persisted]) await refused(store, named('asked', more))
      const together = await store.accept([call('other', [row('also')]), named('also')])
      assert.deepEqual(together.map((answer) => 'error' in answer), [false, true])
      await store.cancelSignals(scope, ['call', 'other'])
      assert.equal((await acceptOne(store, named('asked'))).route, 'deliver')
      await commit(store, run, { rows: [], drain: true })
      assert.deepEqual(await rowIds(store), ['a', 'asked'])
    },
  },
  {
    name: '[A2.5] a signal that is sent again is the same one after its record was pruned',
    async run({ store: open }) {
      const store = await open()
      await answered(store, 'a')
      await acceptOne(store, named('kept', persisted))
      const before = await rowIds(store)
      await store.pruneSome({ recordsBefore: Number.MAX_SAFE_INTEGER, limit: 100 })
      assert.equal(await store.getSignal(scope, 'a'), null)
      const about = ({ route, duplicate, state, runId, rows, fence }: Accepted) => ({ route, duplicate, state, runId, rows: rows.map(({ id }) => id), fence })
      assert.deepEqual(about(await acceptOne(store, named('a'))), { route: 'wake', duplicate: true, state: 'consumed', runId: 'run-of-a', rows: ['a'], fence: undefined })
      assert.deepEqual(about(await acceptOne(store, named('kept'))), { route: 'persist', duplicate: true, state: 'consumed', runId: undefined, rows: ['kept'], fence: undefined })
      assert.deepEqual(await rowIds(store), before)
      assert.equal((await store.getThread(scope))?.status, 'idle')
    },
  },
  {
    name: '[A2.6] a call that brings a message again means that message, and one that says something else under its id is refused',
    async run({ store: open }) {
      const store = await open()
      await answered(store, 'a')
      await refused(store, call('other', [row('a', 'user', 'something else')]))
      await refused(store, call('answer', [row('of-a')]))
      await refused(store, call('role', [row('a', 'assistant'), row('new')]))
      // History that comes along is the thread's own, whatever a display made of it.
      const again = await acceptOne(store, call('again', [row('a', 'user', 'as it was shown'), row('a/0', 'assistant', 'shortened', { messageId: 'of-a' }), row('new')]))
      assert.ok(again.fence)
      const run = { ...(await store.beginRun(again.fence, windows({ low: 10, high: 20 })))!, fence: again.fence }
      await commit(store, run, finish)
      assert.deepEqual(await rowIds(store), ['a', 'a/0', 'new'])
    },
  },
  {
    name: '[A2.6] a call under the id of what waits is refused, unless it says the same',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await acceptOne(store, named('waits'))
      await acceptOne(store, call('first', [row('asked')]))
      await refused(store, call('second', [row('waits', 'user', 'something else')]))
      await refused(store, call('third', [row('asked', 'user', 'something else')]))
      await acceptOne(store, call('same', [row('asked')]))
      await commit(store, run, { drain: true })
      assert.deepEqual(await rowIds(store), ['a', 'waits'])
    },
  },
  {
    name: '[M1.16] a message is not saved or changed under the id of what waits',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await acceptOne(store, send('pending'))
      await acceptOne(store, send('queued', queued))
      await acceptOne(store, call('call', [row('asked')]))
      const before = await everything(store)
      for (const id of ['pending', 'queued', 'asked']) {
        const message = { ...row('fine'), id, role: 'user' as const }
        await refuses('id_taken', store.saveMessages([{ scope, messages: [{ ...message, id: 'fine' }, message] }]))
        await refuses('id_taken', store.updateMessages([{ scope, patches: [{ id, content: { parts: [] } }] }]))
      }
      assert.deepEqual(await everything(store), before)
      await commit(store, run, { drain: true })
      assert.deepEqual(await rowIds(store), ['a', 'pending'])
    },
  },
]
