import assert from 'node:assert/strict'
import { joinRows } from '../../../message/join.ts'
import type { Message } from '../../../message/message.ts'
import type { ThreadStore } from '../../contract/threads.ts'
import type { ThreadClone } from '../../contract/messages.ts'
import {
  accept, commit, everything, finish, ids, persisted, rejectsWith, resultRow, row, rowIds, scope, send, start, threadId, type StoreCase,
} from '../fixture.ts'

const foreign = { threadId, resourceId: 'resource-2' }
const instant = new Date(5_000)

function message(id: string, more: Partial<Message> = {}): Message {
  return { id, role: 'user', createdAt: instant, content: { format: 2, parts: [{ type: 'text', text: id }] }, ...more }
}

async function thread(store: ThreadStore, ...messages: Message[]): Promise<void> {
  await store.createThread({ id: threadId, resourceId: 'resource-1', now: 1 })
  await store.saveMessages([{ scope, messages }])
}

/** A turn whose reply has three rows: a call, its result, a text. */
async function turn(store: ThreadStore, asked = 'asked', answer = 'answer'): Promise<void> {
  const run = await start(store, asked)
  const part = (id: string, more: object = {}) => ({ ...row(id, 'assistant'), messageId: answer, ...more })
  await commit(
    store, run, { rows: [part(`${answer}/0`), { ...resultRow(`${answer}/1`, 'c'), messageId: answer }, part(`${answer}/2`)], ...finish },
  )
}

async function starts(store: ThreadStore, query: object = {}, of = threadId): Promise<string> {
  const found = await store.listMessageStarts({ threadId: of }, { limit: 100, ...query })
  return `${found.starts.map(({ messageId }) => messageId).join(' ')}${found.more ? ' …' : ''}`
}

async function read(store: ThreadStore, of = threadId): Promise<Message[]> {
  return joinRows((await store.listRows({ threadId: of }, { limit: 1000 })).rows)
}

/** The ids of a copy without their suffix. */
const unmarked = (text: string) => text.replaceAll(/~\w+/g, '')

const clone = (id: string, more: Partial<ThreadClone> = {}): ThreadClone => ({ id, metadata: {}, now: 9, ...more })

export const conversationCases: StoreCase[] = [
  {
    name: '[D1.2] messages with equal times are listed in the order in which they were saved, from either end',
    async run({ store: open }) {
      const store = await open()
      await thread(store, ...['d', 'a', 'c', 'e', 'b'].map((id) => message(id)))
      assert.equal(await starts(store), 'b e c a d')
      assert.equal(await starts(store, { after: 0 }), 'd a c e b')
      assert.equal(await starts(store, { limit: 2 }), 'b e …')
      assert.equal(await starts(store, { before: 4, limit: 2 }), 'c a …')
      assert.equal(await starts(store, { after: 3 }), 'e b')
      assert.equal(await starts(store, { from: instant, to: instant, limit: 5 }), 'b e c a d')
      assert.equal(await starts(store, { from: new Date(instant.getTime() + 1) }), '')
    },
  },
  {
    name: 'a message begins once, with any number of rows, and context rows begin none',
    async run({ store: open }) {
      const store = await open()
      await turn(store)
      await store.saveRows(scope, [row('shown', 'context')])
      await accept(store, send('kept', persisted))
      assert.equal(await starts(store), 'kept answer asked')
      await start(store, 'next')
      await accept(store, send('beside', persisted))
      assert.equal(await starts(store), 'beside next kept answer asked', 'also rows of the tail band')
    },
  },
  {
    name: '[M1.1] whole messages are saved; saved again, they keep their position and have one row',
    async run(harness) {
      let store = await harness.store()
      await turn(store)
      await store.saveMessages([{ scope, messages: [message('last')] }])
      const [, before] = await read(store)
      assert.ok(before)
      const edited = { ...before, content: { ...before.content, parts: [{ type: 'text' as const, text: 'edited' }] } }
      const saved = await store.saveMessages([{ scope, messages: [edited] }])
      assert.deepEqual(saved[0]?.content.parts.at(-1), { type: 'text', text: 'edited' })
      if (harness.reopen) store = await harness.reopen(store)
      assert.deepEqual(ids(await read(store)), ['asked', 'answer', 'last'])
      assert.equal((await store.listRows(scope, { limit: 100, messageIds: ['answer'] })).rows.length, 1)
      assert.equal(await starts(store), 'last answer asked')
    },
  },
  {
    name: "[M1.2] messages of several threads are saved all or none; roles can't change; messages of the active run are rejected",
    async run({ store: open }) {
      const store = await open()
      await thread(store, message('a'))
      await store.createThread({ id: 'other', resourceId: 'resource-2', now: 1 })
      const other = { threadId: 'other' }
      await store.saveMessages([
        { scope, messages: [message('b')] }, { scope: other, messages: [message('a'), message('a', { createdAt: new Date(1) })] },
      ])
      assert.deepEqual([await rowIds(store), await rowIds(store, 'other')], [['a', 'b'], ['a']])

      const before = [await everything(store), await everything(store, 'other')]
      const mine = { scope, messages: [message('x')] }
      await rejectsWith(
        'thread_forbidden',
        store.saveMessages([mine, { scope: { threadId: 'other', resourceId: 'resource-1' }, messages: [message('y')] }]),
      )
      await rejectsWith('thread_not_found', store.saveMessages([mine, { scope: { threadId: 'nowhere' }, messages: [message('y')] }]))
      await rejectsWith('invalid_message', store.saveMessages([mine, { scope, messages: [message('a', { role: 'assistant' })] }]))
      await rejectsWith(
        'message_not_found', store.updateMessages([{ scope, patches: [{ id: 'a', content: { parts: [] } }, { id: 'unknown' }] }]),
      )
      assert.deepEqual([await everything(store), await everything(store, 'other')], before)

      const run = await start(store, 'ask')
      await commit(store, run, { rows: [row('said', 'assistant')] })
      await rejectsWith('thread_active', store.saveMessages([{ scope, messages: [message('said', { role: 'assistant' })] }]))
      await store.saveMessages([{ scope, messages: [message('beside')] }])
      await commit(store, run, { rows: [row('more', 'assistant')], ...finish })
      assert.deepEqual(await rowIds(store), ['a', 'b', 'ask', 'said', 'more', 'beside'])
    },
  },
  {
    name: '[M1.3] messages are changed field by field and key by key, also by ten concurrent writers',
    async run({ store: open }) {
      const store = await open()
      await turn(store)
      await thread(store, message('plain', { content: { format: 2, parts: [{ type: 'text', text: 'kept' }], metadata: { gone: 1 } } }))
      const keys = Array.from({ length: 10 }, (_, index) => `k${index}`)
      await Promise.all(
        keys.map((key, index) => store.updateMessages([{ scope, patches: [{ id: 'plain', content: { metadata: { [key]: index } } }] }])),
      )
      const [plain] = await store.updateMessages([
        { scope, patches: [{ id: 'plain', content: { metadata: { gone: null } } }, { id: 'plain', createdAt: new Date(7) }] },
      ])
      assert.deepEqual(plain?.content.metadata, Object.fromEntries(keys.map((key, index) => [key, index])))
      assert.deepEqual([plain?.content.parts, plain?.createdAt], [[{ type: 'text', text: 'kept' }], new Date(7)])

      const [, before] = await read(store)
      const [answer] = await store.updateMessages([{ scope, patches: [{ id: 'answer', content: { metadata: { seen: true } } }] }])
      assert.deepEqual(answer?.content.parts, before?.content.parts, 'its parts stay as they were read')
      assert.deepEqual(answer?.content.metadata, { seen: true })
      assert.deepEqual(ids(await read(store)), ['asked', 'answer', 'plain'])
    },
  },
  {
    name: '[X1.2] a message is found by its id in every thread that has it; with a resource, only in its threads',
    async run({ store: open }) {
      const store = await open()
      await turn(store)
      await store.createThread({ id: 'other', resourceId: 'resource-2', now: 1 })
      await store.saveMessages([{ scope: { threadId: 'other' }, messages: [message('answer')] }])
      await store.saveRows(scope, [row('shown', 'context')])
      const found = async (list: string[], resourceId?: string) =>
        (await store.findMessages(list, resourceId)).map((place) => `${place.messageId}@${place.threadId}`).toSorted()
      assert.deepEqual(
        await found(['answer', 'asked', 'shown', 'unknown', 'answer/0']), ['answer@other', 'answer@thread-1', 'asked@thread-1'],
      )
      assert.deepEqual(await found(['answer'], 'resource-2'), ['answer@other'])
      assert.deepEqual(await found([]), [])
    },
  },
  {
    name: '[M1.4] a clone has the messages of its source, and changes of either do not affect the other',
    async run(harness) {
      let store = await harness.store()
      await turn(store)
      await store.saveRows(scope, [row(
        'shown', 'context', 'shown', { content: { format: 2, parts: [{ type: 'text', text: 'shown' }], metadata: { sources: ['asked'] } } },
      )])
      await start(store, 'now')
      await accept(store, send('beside', persisted))
      const before = await everything(store)
      const made = await store.cloneThread(scope, clone('copy', { title: 'T', metadata: { k: 1 } }))
      const [mark = ''] = /~\w+$/.exec((await rowIds(store, 'copy'))[0] ?? '') ?? []
      const about = { sourceThreadId: threadId, clonedAt: new Date(9).toISOString(), lastMessageId: 'beside' + mark }
      assert.deepEqual(
        [made.id, made.resourceId, made.title, made.metadata, made.status, made.createdAt.getTime()],
        ['copy', 'resource-1', 'T', { k: 1, clone: about }, 'idle', 9],
      )
      assert.deepEqual(await store.getThread({ threadId: 'copy' }), made)
      assert.deepEqual(await everything(store), before)
      const expected = ['asked', 'answer/0', 'answer/1', 'answer/2', 'shown', 'now', 'beside']
      if (harness.reopen) store = await harness.reopen(store)
      const { rows } = await store.listRows({ threadId: 'copy' }, { limit: 100, context: true })
      const copied = expected.map((id) => id + mark)
      assert.deepEqual([ids(rows), rows.map(({ seq }) => seq)], [copied, [1, 2, 3, 4, 5, 6, 7]])
      assert.deepEqual(
        rows.map(({ messageId }) => messageId), ['asked', 'answer', 'answer', 'answer', 'shown', 'now', 'beside'].map((id) => id + mark),
      )
      assert.deepEqual(
        rows.flatMap(({ role, content }) => (role === 'signal' ? (content.metadata?.signal as { id: string } | undefined)?.id : [])),
        ['asked', 'now', 'beside'].map((id) => id + mark),
      )
      assert.deepEqual(await store.listSignals({ threadId: 'copy' }), [])

      const next = await start(store, 'on', { threadId: 'copy', runId: 'run-on' })
      assert.deepEqual(ids(next.rows), [...copied, 'on'])
      await commit(store, next, { rows: [row('fine', 'assistant')], ...finish })
      // The id of a message is unique across the source and its copy.
      assert.deepEqual(
        (await store.findMessages(['asked', `answer${mark}`])).map(({ messageId, threadId: of }) => `${messageId} in ${of}`).toSorted(),
        [`answer${mark} in copy`, `asked in ${threadId}`],
      )
      // Context rows that quote a deleted message are deleted with it, in the copy alone.
      assert.equal(await store.deleteMessages({ threadId: 'copy' }, [`asked${mark}`, 'answer']), 1)
      assert.deepEqual(
        [await rowIds(store), await rowIds(store, 'copy')],
        [expected, [...copied.filter((id) => id !== `asked${mark}` && id !== `shown${mark}`), 'on', 'fine']],
      )
      await rejectsWith('thread_exists', store.cloneThread(scope, clone('copy')))
      await rejectsWith('thread_forbidden', store.cloneThread(foreign, clone('theirs')))
      await rejectsWith('thread_not_found', store.cloneThread({ threadId: 'nowhere' }, clone('theirs')))
      assert.equal(await store.getThread({ threadId: 'theirs' }), null)
    },
  },
  {
    name: '[M1.5] a clone of the newest, of a time range or of chosen messages has a window of its own',
    async run({ store: open }) {
      const store = await open()
      for (const nth of [1, 2, 3]) await turn(store, `u${nth}`, `a${nth}`)
      await store.saveRows(scope, [row('shown', 'context')])
      await store.updateMessages([{ scope, patches: [1, 2, 3].flatMap(
        (nth) => [{ id: `u${nth}`, createdAt: new Date(nth * 10) }, { id: `a${nth}`, createdAt: new Date(nth * 10 + 5) }],
      ) }])
      const cloned = async (id: string, more: Partial<ThreadClone>) => {
        await store.cloneThread(scope, clone(id, more))
        return unmarked(await starts(store, { after: 0 }, id))
      }
      assert.equal(await cloned('newest', { limit: 3 }), 'a2 u3 a3')
      assert.equal(await cloned('none', { limit: 0 }), '')
      assert.equal(await cloned('span', { from: new Date(15), to: new Date(30) }), 'a1 u2 a2 u3')
      assert.equal(await cloned('chosen', { messageIds: ['a3', 'u1', 'unknown'] }), 'u1 a3')
      assert.equal(await cloned('both', { messageIds: ['a3', 'u1'], limit: 1 }), 'a3')
      assert.deepEqual((await rowIds(store, 'newest')).map(unmarked), ['a2/0', 'u3', 'a3/0'])

      const next = await start(store, 'go', { threadId: 'span', runId: 'run-go' })
      assert.deepEqual(next.rows.map(({ seq }) => seq), [1, 2, 3, 4, 5])
      const window = await store.readWindow({ threadId: 'span' }, { low: 2, high: 2 }, 0)
      assert.deepEqual(ids(window).map(unmarked), ['u3', 'go'])
    },
  },
  {
    name: '[M1.6] a clone for another resource belongs to it, without context rows',
    async run({ store: open }) {
      const store = await open()
      await turn(store)
      await store.saveRows(scope, [row('shown', 'context')])
      const made = await store.cloneThread(scope, clone('theirs', { resourceId: 'resource-2' }))
      assert.equal(made.resourceId, 'resource-2')
      assert.deepEqual((await rowIds(store, 'theirs')).map(unmarked), ['asked', 'answer/0', 'answer/1', 'answer/2'])
      await rejectsWith('thread_forbidden', store.getThread({ threadId: 'theirs', resourceId: 'resource-1' }))
    },
  },
  {
    name: 'clones are listed by their source',
    async run({ store: open }) {
      const store = await open()
      await thread(store)
      for (const [id, source] of [['c1', threadId], ['c2', 'c1'], ['c3', threadId]] as const) {
        await store.createThread({ id, resourceId: 'resource-1', metadata: { clone: { sourceThreadId: source } }, now: 2 })
      }
      const orderBy = { field: 'createdAt', direction: 'ASC' } as const
      assert.deepEqual(ids((await store.listThreads({ cloneOf: threadId, orderBy, limit: 10 })).threads), ['c1', 'c3'])
      assert.deepEqual(ids((await store.listThreads({ cloneOf: 'c1', resourceId: 'resource-1', orderBy, limit: 10 })).threads), ['c2'])
      assert.deepEqual((await store.listThreads({ cloneOf: 'c1', resourceId: 'resource-2', orderBy, limit: 10 })).threads, [])
    },
  },
  {
    name: '[M1.7] an idle thread is transferred with all of its records; an active one is rejected',
    async run({ store: open }) {
      const store = await open()
      await turn(store)
      await store.patchThread(scope, { metadata: { topic: 'tea' } })
      await rejectsWith('thread_forbidden', store.transferThread(foreign, 'resource-2'))
      const moved = await store.transferThread(scope, 'resource-2')
      assert.equal(moved.resourceId, 'resource-2')
      await rejectsWith('thread_forbidden', store.listRows(scope, { limit: 1 }))
      assert.equal((await store.listRows(foreign, { limit: 1 })).rows[0]?.resourceId, 'resource-2')
      assert.deepEqual((await store.listRuns({ resourceId: 'resource-1' })), [])
      assert.equal((await store.listRuns({ resourceId: 'resource-2' })).length, 1)
      const found = async (resourceId: string) =>
        ids((await store.listThreads({ resourceId, metadata: { topic: 'tea' }, limit: 5 })).threads)
      assert.deepEqual([await found('resource-1'), await found('resource-2')], [[], [threadId]])
      await start(store, 'again', { resourceId: 'resource-2' })
      await rejectsWith('thread_active', store.transferThread(foreign, 'resource-1'))
    },
  },
  {
    name: '[M1.7] a thread and its child threads are transferred without context rows',
    async run({ store: open }) {
      const store = await open()
      await turn(store)
      await store.createThread({ id: 'below', resourceId: 'resource-1', parentId: threadId, now: 1 })
      await store.saveRows(scope, [row('shown', 'context')])
      await store.saveRows({ threadId: 'below' }, [row('shown below', 'context'), row('said below', 'user')])
      assert.equal((await rowIds(store, threadId)).at(-1), 'shown')
      await store.transferThread(scope, 'resource-2')
      assert.deepEqual(await rowIds(store, threadId), ['asked', 'answer/0', 'answer/1', 'answer/2'])
      assert.deepEqual(await rowIds(store, 'below'), ['said below'])
    },
  },
  {
    name: '[M1.8] expired messages are pruned in small parts, with the context rows that quote them; active threads are not pruned',
    async run({ store: open }) {
      const store = await open()
      await thread(store, ...Array.from({ length: 7 }, (_, index) => message(`m${index}`, { createdAt: new Date(index * 100) })))
      await store.saveRows(scope, [row('quote', 'context', 'q', { content: { format: 2, parts: [], metadata: { sources: ['m2'] } } })])
      await store.createThread({ id: 'old', resourceId: 'resource-2', now: 1 })
      await turn(store)
      await start(store, 'busy', { threadId: 'busy' })
      const prune = async (policy: object) => {
        const sum = { threads: 0, messages: 0, records: 0 }
        for (let after: number | undefined = 0; after !== undefined;) {
          const pruned: Awaited<ReturnType<ThreadStore['pruneSome']>> = await store.pruneSome({ limit: 2, after, ...policy })
          sum.threads += pruned.threadIds.length
          sum.messages += pruned.messages.length
          sum.records += pruned.records
          after = pruned.next
        }
        return sum
      }
      assert.deepEqual(await prune({ messagesBefore: 500 }), { threads: 0, messages: 5, records: 0 })
      assert.deepEqual(await rowIds(store), ['m5', 'm6', 'asked', 'answer/0', 'answer/1', 'answer/2'])
      assert.deepEqual(await prune({ threadsBefore: 1000 }), { threads: 1, messages: 0, records: 0 })
      assert.equal(await store.getThread({ threadId: 'old' }), null)
      assert.deepEqual(await prune({ recordsBefore: Date.now() * 2 }), { threads: 0, messages: 0, records: 2 })
      assert.deepEqual([await store.listSignals(scope), await store.listRuns({ threadId })], [[], []])
      assert.equal((await store.listSignals({ threadId: 'busy' })).length, 1)
      assert.equal((await store.listRuns({ threadId: 'busy' })).length, 1)
    },
  },
]
