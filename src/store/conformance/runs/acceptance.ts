import assert from 'node:assert/strict'
import type { Accepted, Send, ThreadStore } from '../../contract/threads.ts'
import {
  accept, acceptOne, begin, commit, everything, finish, ids, persisted, queued, rejectsWith, row, rowIds, scope, send, signalRow, start,
  states, status, threadId, unclaimed, windows, type StoreCase,
} from '../fixture.ts'

/** The row of a signal with a caller id. */
function sentRow(id: string, text = id) {
  return row(id, 'signal', text, { type: 'user', content: {
    format: 2, parts: [{ type: 'text', text }],
    metadata: { signal: { id, type: 'user', tagName: 'user', acceptedAt: '2026-01-01T00:00:00.000Z' } },
  } })
}

function named(id: string, more: Partial<Send> = {}): Send {
  return send(id, { rows: [sentRow(id)], given: [id], ...more })
}

/** The send of a `generate()` call: queued, and bound to the process of its caller. */
function call(id: string, rows: Send['rows'], more: Partial<Send> = {}): Send {
  return send(id, { ...queued, rows, given: rows.map((one) => one.id), boundTo: 'p1', ...more })
}

async function refused(store: ThreadStore, one: Send): Promise<void> {
  const before = await everything(store)
  const [answer] = await store.accept([one])
  assert.ok(answer && 'error' in answer, `${one.id} is refused`)
  await rejectsWith('id_taken', Promise.reject(answer.error))
  assert.deepEqual(await everything(store), before)
}

async function answered(store: ThreadStore, ...ids: string[]): Promise<void> {
  for (const id of ids) await commit(
    store, await start(store, id, { rows: [sentRow(id)] }),
    { rows: [row(`${id}/0`, 'assistant', 'said', { messageId: `of-${id}` })], ...finish },
  )
}

export const acceptanceCases: StoreCase[] = [
  {
    name: '[A2.1] a repeated id after a wake is one signal',
    async run({ store: open }) {
      const store = await open()
      const first = await acceptOne(store, send('a'))
      const again = await acceptOne(store, send('a', { runId: 'another', rows: [signalRow('a', 'reactive')] }))
      assert.equal(first.duplicate, false)
      assert.deepEqual(
        { route: again.route, runId: again.runId, duplicate: again.duplicate, state: again.state, fence: again.fence },
        { route: 'wake', runId: 'run-of-a', duplicate: true, state: 'pending', fence: undefined },
      )
      assert.deepEqual(again.rows, first.rows)
      assert.equal((await store.listSignals(scope)).length, 1)
    },
  },
  {
    name: '[A2.1] a repeated id is one signal on every route, before and after it is answered',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'woke')
      const all = [
        send('delivered'), send('queued', queued), send('persisted', persisted), send('cut', { ifActive: { behavior: 'interrupt' } }),
      ]
      const first = await accept(store, ...all)
      assert.deepEqual(first.map((answer) => answer.route), ['deliver', 'queue', 'persist', 'interrupt'])
      const again = await accept(store, ...all, send('woke'))
      assert.deepEqual(again.map((answer) => [answer.route, answer.duplicate]), [
        ['deliver', true], ['queue', true], ['persist', true], ['interrupt', true], ['wake', true],
      ])
      assert.deepEqual(again.map((answer) => answer.runId), ['run-of-woke', 'run-of-queued', undefined, 'run-of-woke', 'run-of-woke'])

      await commit(store, run, { rows: [row('said', 'assistant')], drain: true })
      await commit(store, run, { step: 1, ...finish })
      const late = await accept(store, ...all, send('woke'))
      assert.deepEqual(late.map((answer) => [answer.duplicate, answer.state]), [
        [true, 'consumed'], [true, 'pending'], [true, 'consumed'], [true, 'consumed'], [true, 'consumed'],
      ])
      assert.deepEqual(late.map((answer) => ids(answer.rows)), [['delivered'], ['queued'], ['persisted'], ['cut'], ['woke']])
      assert.deepEqual(await rowIds(store), ['woke', 'said', 'delivered', 'cut', 'persisted'])
    },
  },
  {
    name: '[A2.1] an id that is sent twice in one batch, or twenty times concurrently, is one signal',
    async run({ store: open }) {
      const store = await open()
      const batch = await accept(store, send('a'), send('a'))
      assert.deepEqual(batch.map((answer) => answer.duplicate), [false, true])
      const crowd = await Promise.all(Array.from({ length: 20 }, (_, index) => acceptOne(store, send('b', index % 2 ? queued : {}))))
      assert.equal(crowd.filter((answer) => !answer.duplicate).length, 1)
      assert.equal(new Set(crowd.map((answer) => `${answer.route} ${answer.runId}`)).size, 1, 'all of them describe the first')
      assert.deepEqual(ids(await store.listSignals(scope)), ['a', 'b'])
    },
  },
  {
    name: '[A2.1] a discarded signal is not stored and may be sent again',
    async run({ store: open }) {
      const store = await open()
      const dropped = await acceptOne(store, send('a', { ifIdle: { behavior: 'discard' } }))
      assert.deepEqual([dropped.route, dropped.state, dropped.duplicate, dropped.runId], ['discard', 'cancelled', false, undefined])
      assert.equal(await store.getThread(scope), null)
      const again = await acceptOne(store, send('a'))
      assert.deepEqual([again.route, again.duplicate], ['wake', false])
    },
  },
  {
    name: '[A3.2] a rejected send stores nothing, and the others of its batch are stored',
    async run({ store: open }) {
      const store = await open()
      await acceptOne(store, send('mine'))
      const before = await everything(store)
      const circular: Record<string, unknown> = {}
      circular.self = circular
      const answers = await store.accept([
        send('left', { threadId: 'thread-2' }),
        send('stolen', { resourceId: 'resource-2' }),
        send('no-json', { rows: [row('no-json', 'user', '', { content: { format: 2, parts: [], metadata: circular } })] }),
        send('right', { threadId: 'thread-3' }),
      ])
      assert.deepEqual(answers.map((answer) => 'error' in answer), [false, true, true, false])
      const [, stolen] = answers
      assert.ok(stolen && 'error' in stolen)
      await rejectsWith('thread_forbidden', Promise.reject(stolen.error))
      assert.deepEqual(await everything(store), before)
      assert.equal(await status(store, 'thread-2'), 'running')
      assert.equal(await status(store, 'thread-3'), 'running')
    },
  },
  {
    name: '[A3.9] a send whose caller chose the id of a run of the thread stores nothing, unless it enters the active run',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      const queued: Partial<Send> = { mode: 'queue', runId: run.run.runId, givenRunId: true }
      const before = await everything(store)
      const [answer] = await store.accept([send('b', queued)])
      assert.ok(answer && 'error' in answer)
      await rejectsWith('invalid_argument', Promise.reject(answer.error))
      assert.deepEqual(await everything(store), before)
      const [entered] = await store.accept([send('c', { runId: run.run.runId, givenRunId: true })])
      assert.ok(entered && 'route' in entered && entered.route === 'deliver')
    },
  },
  {
    name: '[A3.2] a send with refuseSuspended to a suspended thread stores nothing',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await commit(store, run, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } })
      const before = await everything(store)
      const [answer] = await store.accept([send('b', { refuseSuspended: true })])
      assert.ok(answer && 'error' in answer)
      await rejectsWith('thread_suspended', Promise.reject(answer.error))
      assert.deepEqual(await everything(store), before)
    },
  },
  {
    name: '[M1.21] a send describes its thread: one that exists gets the title, and the metadata is merged',
    async run({ store: open }) {
      const store = await open()
      const made = await acceptOne(store, send('a', { thread: { title: 'First', metadata: { a: 1, b: 1 }, parentId: 'parent' } }))
      assert.deepEqual(made.fence, { threadId, owner: 'p1', epoch: 1 })
      assert.deepEqual([made.epoch, made.owner, made.runId], [1, 'p1', 'run-of-a'])
      await acceptOne(store, send('b', { thread: { title: 'Second', metadata: { a: 2 } } }))
      const thread = await store.getThread(scope)
      const expected = ['Second', { a: 2, b: 1 }, 'parent', 'running']
      assert.deepEqual([thread?.title, thread?.metadata, thread?.parentId, thread?.status], expected)
      assert.deepEqual([thread?.runId, thread?.agentId, thread?.owner], ['run-of-a', 'agent-1', 'p1'])
    },
  },
  {
    name: 'attributes of the chosen branch replace equal names in place, follow the others, and are stored',
    async run({ store: open }) {
      const store = await open()
      const branches = {
        ifIdle: { behavior: 'wake', attributes: { added: 'yes', when: 'idle' } },
        ifActive: { behavior: 'deliver', attributes: { when: 'active' } },
      } as const
      const attributed = (id: string) => ({ ...branches, rows: [signalRow(id, 'user', { when: 'never', from: 'test' })] })
      const idle = await acceptOne(store, send('a', attributed('a')))
      const active = await acceptOne(store, send('b', attributed('b')))
      const attributesOf = (rows: typeof idle.rows) =>
        rows.map(({ content }) => Object.entries((content.metadata?.signal as { attributes: object } | undefined)?.attributes ?? {}))
      const [ofIdle, ofActive] = [[['when', 'idle'], ['from', 'test'], ['added', 'yes']], [['when', 'active'], ['from', 'test']]]
      assert.deepEqual([...attributesOf(idle.rows), ...attributesOf(active.rows)], [ofIdle, ofActive])
      assert.ok(idle.fence)
      const { taken, rows } = await begin(store, idle.fence)
      assert.deepEqual(attributesOf(taken.flatMap((mail) => mail.rows)), [ofIdle, ofActive])
      assert.deepEqual(attributesOf(rows), attributesOf(taken.flatMap((mail) => mail.rows)))
    },
  },
  {
    name: 'an event on an idle thread gets its own epoch',
    async run({ store: open }) {
      const store = await open()
      const kept = await acceptOne(store, send('a', persisted))
      const more = await acceptOne(store, send('b', persisted))
      assert.deepEqual([kept.route, kept.state, kept.epoch, more.epoch], ['persist', 'consumed', 1, 2])
      assert.deepEqual([...kept.rows, ...more.rows].map(({ seq }) => seq), [1, 2])
      const waits = await acceptOne(store, send('c', unclaimed))
      assert.deepEqual([waits.route, waits.epoch, waits.fence, await status(store)], ['wake', 3, undefined, 'idle'])
      assert.deepEqual(await states(store), { a: 'consumed', b: 'consumed', c: 'pending' })
    },
  },
  {
    name: '[A2.4] a send under the id of a message, of a reply or of one of its rows is rejected and writes nothing',
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
    name: '[A2.4] the ids of the rows of a call are taken as soon as the call is accepted',
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
    name: '[A2.5] a repeated signal is recognized after its mailbox record was pruned',
    async run({ store: open }) {
      const store = await open()
      await answered(store, 'a')
      await acceptOne(store, named('kept', persisted))
      const before = await rowIds(store)
      await store.pruneSome({ recordsBefore: Number.MAX_SAFE_INTEGER, limit: 100 })
      assert.equal(await store.getSignal(scope, 'a'), null)
      const about = ({ route, duplicate, state, runId, rows, fence }: Accepted) => ({
        route, duplicate, state, runId, rows: rows.map(({ id }) => id), fence,
      })
      assert.deepEqual(
        about(await acceptOne(store, named('a'))),
        { route: 'wake', duplicate: true, state: 'consumed', runId: 'run-of-a', rows: ['a'], fence: undefined },
      )
      assert.deepEqual(
        about(await acceptOne(store, named('kept'))),
        { route: 'persist', duplicate: true, state: 'consumed', runId: undefined, rows: ['kept'], fence: undefined },
      )
      assert.deepEqual(await rowIds(store), before)
      assert.equal((await store.getThread(scope))?.status, 'idle')
    },
  },
  {
    name: '[A2.6] a call that repeats a message means that message; different contents under its id are rejected',
    async run({ store: open }) {
      const store = await open()
      await answered(store, 'a')
      await refused(store, call('other', [row('a', 'user', 'something else')]))
      await refused(store, call('answer', [row('of-a')]))
      await refused(store, call('role', [row('a', 'assistant'), row('new')]))
      // For repeated history, the thread's own version counts.
      const again = await acceptOne(
        store,
        call('again', [row('a', 'user', 'as it was shown'), row('a/0', 'assistant', 'shortened', { messageId: 'of-a' }), row('new')]),
      )
      assert.ok(again.fence)
      const run = { ...(await store.beginRun(again.fence, windows({ low: 10, high: 20 })))!, fence: again.fence }
      await commit(store, run, finish)
      assert.deepEqual(await rowIds(store), ['a', 'a/0', 'new'])
    },
  },
  {
    name: '[A2.6] a call under the id of a pending message is rejected, unless the contents are equal',
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
    name: "[M1.16] a message can't be saved or changed under the id of a pending signal",
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await acceptOne(store, send('pending'))
      await acceptOne(store, send('queued', queued))
      await acceptOne(store, call('call', [row('asked')]))
      const before = await everything(store)
      for (const id of ['pending', 'queued', 'asked']) {
        const message = { ...row('fine'), id, role: 'user' as const }
        await rejectsWith('id_taken', store.saveMessages([{ scope, messages: [{ ...message, id: 'fine' }, message] }]))
        await rejectsWith('id_taken', store.updateMessages([{ scope, patches: [{ id, content: { parts: [] } }] }]))
      }
      assert.deepEqual(await everything(store), before)
      await commit(store, run, { drain: true })
      assert.deepEqual(await rowIds(store), ['a', 'pending'])
    },
  },
]
