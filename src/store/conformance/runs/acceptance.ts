import assert from 'node:assert/strict'
import type { StoreCase } from '../case.ts'
import {
  accept, acceptOne, begin, commit, everything, finish, ids, persisted, queued, refuses, row, rowIds, scope, send, signalRow, start, states, status,
  threadId, unclaimed,
} from '../fixture.ts'

export const acceptanceCases: StoreCase[] = [
  {
    name: '[A2.1] the same id again, after a wake, is one signal',
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
    name: '[A2.1] the same id again is one signal on every route, before and after it is answered',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'woke')
      const all = [send('delivered'), send('queued', queued), send('persisted', persisted), send('cut', { ifActive: { behavior: 'interrupt' } })]
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
    name: '[A2.1] the same id twice in one batch, and twenty times at once, is one signal',
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
    name: '[A2.1] what was discarded leaves no trace and may be sent again',
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
    name: '[A3.2] a refused send leaves nothing, and its neighbours stand',
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
      await refuses('thread_forbidden', Promise.reject(stolen.error))
      assert.deepEqual(await everything(store), before)
      assert.equal(await status(store, 'thread-2'), 'running')
      assert.equal(await status(store, 'thread-3'), 'running')
    },
  },
  {
    name: '[A3.2] a send that refuses to wait behind a suspended run leaves nothing',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await commit(store, run, { end: { status: 'suspended', calls: [{ toolCallId: 'c', toolName: 't', args: {}, kind: 'approval' }] } })
      const before = await everything(store)
      const [answer] = await store.accept([send('b', { refuseSuspended: true })])
      assert.ok(answer && 'error' in answer)
      await refuses('thread_suspended', Promise.reject(answer.error))
      assert.deepEqual(await everything(store), before)
    },
  },
  {
    name: 'a send makes its thread, with what it says about it',
    async run({ store: open }) {
      const store = await open()
      const made = await acceptOne(store, send('a', { thread: { title: 'First', metadata: { a: 1 }, parentId: 'parent' } }))
      assert.deepEqual(made.fence, { threadId, owner: 'p1', epoch: 1 })
      assert.deepEqual([made.epoch, made.owner, made.runId], [1, 'p1', 'run-of-a'])
      await acceptOne(store, send('b', { thread: { title: 'Second', metadata: { a: 2 } } }))
      const thread = await store.getThread(scope)
      assert.deepEqual([thread?.title, thread?.metadata, thread?.parentId, thread?.status], ['First', { a: 1 }, 'parent', 'running'])
      assert.deepEqual([thread?.runId, thread?.agentId, thread?.owner], ['run-of-a', 'agent-1', 'p1'])
    },
  },
  {
    name: 'attributes of the branch that was taken are merged into signal rows, and kept',
    async run({ store: open }) {
      const store = await open()
      const branches = { ifIdle: { behavior: 'wake', attributes: { when: 'idle' } }, ifActive: { behavior: 'deliver', attributes: { when: 'active' } } } as const
      const attributed = (id: string) => ({ ...branches, rows: [signalRow(id, 'user', { when: 'never', from: 'test' })] })
      const idle = await acceptOne(store, send('a', attributed('a')))
      const active = await acceptOne(store, send('b', attributed('b')))
      const attributesOf = (rows: typeof idle.rows) =>
        rows.map(({ content }) => content.metadata?.signal as { attributes: unknown } | undefined).map((signal) => signal?.attributes)
      assert.deepEqual(attributesOf(idle.rows), [{ when: 'idle', from: 'test' }])
      assert.deepEqual(attributesOf(active.rows), [{ when: 'active', from: 'test' }])
      assert.ok(idle.fence)
      const { taken, rows } = await begin(store, idle.fence)
      assert.deepEqual(attributesOf(taken.flatMap((mail) => mail.rows)), [{ when: 'idle', from: 'test' }, { when: 'active', from: 'test' }])
      assert.deepEqual(attributesOf(rows), attributesOf(taken.flatMap((mail) => mail.rows)))
    },
  },
  {
    name: 'what happens on an idle thread takes an epoch of its own',
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
]
