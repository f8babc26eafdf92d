import assert from 'node:assert/strict'
import type { StoreCase } from '../fixture.ts'
import { accept, acceptOne, commit, everything, finish, ids, persisted, row, rowIds, scope, send, signalRow, start } from '../fixture.ts'

const ten = Array.from({ length: 10 }, (_, index) => `m${index}`)

export const messageCases: StoreCase[] = [
  {
    name: 'rows are read as they were stored',
    async run(harness) {
      let store = await harness.store()
      await start(store)
      const full = row('full', 'assistant', 'text', {
        type: 'text',
        createdAt: new Date(1234),
        content: {
          format: 2, parts: [{ type: 'text', text: 'ünï\u0000cödé 🙂', providerMetadata: { p: { a: [1, null, false] } } }],
          metadata: { k: { v: 1 } },
        },
      })
      const [saved] = await store.saveRows(scope, [full])
      if (harness.reopen) store = await harness.reopen(store)
      const { rows } = await store.listRows(scope, { limit: 1 })
      assert.deepEqual(rows[0], { ...full, threadId: 'thread-1', resourceId: 'resource-1', seq: rows[0]?.seq })
      assert.deepEqual(saved, rows[0])
    },
  },
  {
    name: 'changes of an object that a caller holds do not change what is stored',
    async run({ store: open }) {
      const store = await open()
      const mine = send(
        'a', { ...persisted, rows: [row('a', 'user', 'before', { content: { format: 2, parts: [], metadata: { list: [1] } } })] },
      )
      await acceptOne(store, mine)
      const before = await everything(store)
      const held = mine.rows[0]?.content.metadata?.list as number[]
      held.push(2)
      const read = (await store.listRows(scope, { limit: 1 })).rows[0]?.content.metadata?.list as number[]
      read.push(3)
      const thread = await store.getThread(scope)
      if (thread) thread.metadata.changed = true
      assert.deepEqual(await everything(store), before)
    },
  },
  {
    name: 'rows are paged by seq: the newest, those before and those after',
    async run({ store: open }) {
      const store = await open()
      await store.createThread({ id: scope.threadId, resourceId: 'resource-1', now: 1 })
      const saved = await store.saveRows(scope, ten.map((id) => row(id)))
      assert.deepEqual(saved.map(({ seq }) => seq), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
      const page = async (query: Parameters<typeof store.listRows>[1]) => {
        const { rows, more } = await store.listRows(scope, query)
        return [ids(rows).join(' '), more]
      }
      assert.deepEqual(await page({ limit: 3 }), ['m7 m8 m9', true])
      assert.deepEqual(await page({ limit: 10 }), [ten.join(' '), false])
      assert.deepEqual(await page({ limit: 3, before: 8 }), ['m4 m5 m6', true])
      assert.deepEqual(await page({ limit: 3, before: 3 }), ['m0 m1', false])
      assert.deepEqual(await page({ limit: 3, after: 0 }), ['m0 m1 m2', true])
      assert.deepEqual(await page({ limit: 3, after: 8 }), ['m8 m9', false])
      assert.deepEqual(await page({ limit: 2, after: 2, before: 6 }), ['m2 m3', true])
      assert.deepEqual(await page({ limit: 5, messageIds: ['m2', 'm5', 'unknown'] }), ['m2 m5', false])
    },
  },
  {
    name: 'rows are filtered by time and by message; context rows are listed only on request',
    async run({ store: open }) {
      const store = await open()
      await store.createThread({ id: scope.threadId, resourceId: 'resource-1', now: 1 })
      const at = (id: string, time: number, role: 'user' | 'context' = 'user') =>
        row(id, role, id, { createdAt: new Date(time), messageId: `of-${id}` })
      await store.saveRows(scope, [at('a', 100), at('ctx', 150, 'context'), at('b', 200), at('c', 300)])
      const found = async (query: object) => ids((await store.listRows(scope, { limit: 10, ...query })).rows)
      assert.deepEqual(await found({}), ['a', 'b', 'c'])
      assert.deepEqual(await found({ context: true }), ['a', 'ctx', 'b', 'c'])
      assert.deepEqual(await found({ from: new Date(200) }), ['b', 'c'])
      assert.deepEqual(await found({ to: new Date(200), context: true }), ['a', 'ctx', 'b'])
      assert.deepEqual(await found({ from: new Date(101), to: new Date(299) }), ['b'])
      assert.deepEqual(await found({ messageIds: ['of-c', 'of-a', 'c'] }), ['a', 'c'])
      assert.deepEqual((await store.listRows(scope, { limit: 1, to: new Date(200) })).more, true)
    },
  },
  {
    name: 'a row that is saved again is replaced at its position',
    async run({ store: open }) {
      const store = await open()
      await store.createThread({ id: scope.threadId, resourceId: 'resource-1', now: 1 })
      await store.saveRows(scope, [row('a'), row('b'), row('c')])
      const again = await store.saveRows(scope, [row('b', 'user', 'edited'), row('d')])
      assert.deepEqual(again.map(({ id, seq }) => [id, seq]), [['b', 2], ['d', 4]])
      const { rows } = await store.listRows(scope, { limit: 10 })
      assert.deepEqual(rows.map(({ id, content }) => [id, content.parts]), [
        ['a', [{ type: 'text', text: 'a' }]], [
          'b', [{ type: 'text', text: 'edited' }],
        ], ['c', [{ type: 'text', text: 'c' }]], ['d', [{ type: 'text', text: 'd' }]],
      ])
    },
  },
  {
    name: 'messages are deleted by id, with all their rows and the context that quotes them',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'u')
      const part = (id: string, role: 'assistant' | 'tool') => row(id, role, id, { messageId: 'm' })
      const quote = (id: string, ...sources: string[]) =>
        row(id, 'context', id, { content: { format: 2, parts: [], metadata: { sources } } })
      await commit(store, run, {
        rows: [part('m/0', 'assistant'), part('m/0/r', 'tool'), quote('q1', 'x', 'm'), quote('q2', 'u'), row('plain', 'context')],
        ...finish,
      })
      assert.equal(await store.deleteMessages(scope, ['m', 'unknown', 'q2']), 1)
      assert.deepEqual(await rowIds(store), ['u', 'q2', 'plain'])
      assert.equal(await store.deleteMessages(scope, ['u']), 1)
      assert.deepEqual(await rowIds(store), ['plain'])
      assert.deepEqual((await store.getSignal(scope, 'u'))?.rows, [])
    },
  },
  {
    name: '[K2.3] a context row is stored only if the quoted message has the quoted text, and removed when any writer changes that text',
    async run({ store: open }) {
      const store = await open()
      const other = { threadId: 'thread-2', resourceId: 'resource-1' }
      await store.createThread({ id: other.threadId, resourceId: other.resourceId, now: 1 })
      await store.saveRows(other, [row('x', 'user', 'before'), row('y', 'user', 'yes')])
      const run = await start(store, 'u')
      const quote = (id: string, messageId: string, text: string) => ({
        row: row(id, 'context', id, { content: { format: 2, parts: [], metadata: { quotes: [{ threadId: 'thread-2', messageId }] } } }),
        quoted: { rowId: id, threadId: 'thread-2', messageId, text },
      })
      const quotes = [quote('q1', 'x', 'before'), quote('q2', 'x', 'another'), quote('q3', 'gone', ''), quote('q4', 'y', 'yes')]
      const { rows } = await commit(store, run, { rows: quotes.map((one) => one.row), quoted: quotes.map((one) => one.quoted), ...finish })
      assert.deepEqual(ids(rows), ['q1', 'q4'])
      assert.deepEqual(await rowIds(store), ['u', 'q1', 'q4'])
      await store.saveRows(other, [row('y', 'user', 'yes')])
      await store.saveRows(other, [row('x', 'user', 'after')])
      assert.deepEqual(await rowIds(store), ['u', 'q4'])
    },
  },
  {
    name: '[K2.12] a rejected run removes the context rows of other threads that quote it',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'u')
      const other = { threadId: 'thread-2', resourceId: 'resource-1' }
      await store.createThread({ id: other.threadId, resourceId: other.resourceId, now: 1 })
      await store.saveRows(other, [row(
        'q', 'context', 'q', { content: { format: 2, parts: [], metadata: { quotes: [{ threadId: scope.threadId, messageId: 'u' }] } } },
      ), row('z')])
      assert.equal((await store.getRun(scope, run.run.runId))?.sealSeq, 1)
      await commit(store, run, { end: { status: 'rejected' } })
      assert.deepEqual(ids((await store.listRows(other, { limit: 5, context: true })).rows), ['z'])
    },
  },
  {
    name: 'all messages of a thread are deleted, and its numbering continues',
    async run({ store: open }) {
      const store = await open()
      await accept(store, ...ten.map((id) => send(id, { ...persisted, rows: [signalRow(id, id === 'm3' ? 'reactive' : 'user')] })))
      await store.saveRows(scope, [row('ctx', 'context')])
      assert.equal(await store.deleteMessages(scope), 10)
      assert.deepEqual(await rowIds(store), [])
      const run = await start(store, 'next')
      assert.deepEqual(ids(run.rows), ['next'])
      assert.ok((run.rows[0]?.seq ?? 0) > 10, 'a seq is never given twice')
    },
  },
  {
    name: 'signals are read with their rows, pending or in history, filtered and paged',
    async run({ store: open }) {
      const store = await open()
      await start(store, 'a', { options: { maxSteps: 2 }, boundTo: 'p1' })
      await accept(store, send('b'), send('c', persisted), send('d', { mode: 'queue' }))
      const all = await store.listSignals(scope)
      assert.deepEqual(all.map(({ id, ord, route, kind, state, rows }) => [id, ord, route, kind, state, ids(rows)]), [
        ['a', 1, 'wake', 'enter', 'taken', ['a']],
        ['b', 2, 'deliver', 'enter', 'pending', ['b']],
        ['c', 3, 'persist', 'enter', 'consumed', ['c']],
        ['d', 4, 'queue', 'turn', 'pending', ['d']],
      ])
      assert.deepEqual([all[0]?.options, all[0]?.boundTo, all[0]?.step, all[0]?.agentId], [{ maxSteps: 2 }, 'p1', 0, 'agent-1'])
      assert.deepEqual(ids(await store.listSignals(scope, { states: ['pending'] })), ['b', 'd'])
      assert.deepEqual(ids(await store.listSignals(scope, { after: 1, limit: 2 })), ['b', 'c'])
      assert.deepEqual(await store.getSignal(scope, 'd'), all[3])
      assert.equal(await store.getSignal(scope, 'unknown'), null)
    },
  },
]
