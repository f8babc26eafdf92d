import assert from 'node:assert/strict'
import type { ThreadStore } from '../../contract/threads.ts'
import type { Message } from '../../../message/message.ts'
import { acceptOne, commit, finish, persisted, resourceId, row, rowIds, send, start, tick, type StoreWriterCase } from '../fixture.ts'
import { answerOr, ascending, countFrom, exactlyOne, rounds } from './race.ts'

/** Three changes of one writer, one after the other. */
async function thrice(change: (index: number) => Promise<unknown>): Promise<void> {
  for (const index of [0, 1, 2]) await change(index)
}

const sixKeys = ['a0', 'a1', 'a2', 'b0', 'b1', 'b2']

const message = (id: string, threadId: string, text = id): Message => ({
  id, role: 'user', createdAt: new Date(tick()), threadId, resourceId, content: { format: 2, parts: [{ type: 'text', text }] },
})

/** What two writers that change one thread, its messages and its working memory at the same time may rely on. */
export const threadWriterCases: StoreWriterCase[] = [
  {
    name: '[X1.1] [R1.6] a thread that both create is one; of two resources that create it one has it',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const create = (store: ThreadStore, id: string, of = resourceId) =>
        store.createThread({ id, resourceId: of, metadata: { by: of }, now: tick() })
      const same = await together(() => create(one, `same-${nth}`), () => create(two, `same-${nth}`))
      exactlyOne(same.map(({ created }) => created))
      const answers = await together(
        () => answerOr(create(one, `other-${nth}`, 'resource-1'), 'thread_forbidden'),
        () => answerOr(create(two, `other-${nth}`, 'resource-2'), 'thread_forbidden'),
      )
      const made = answers.findIndex((answer) => answer !== 'thread_forbidden')
      assert.equal(answers[1 - made], 'thread_forbidden')
      assert.deepEqual((await two.getThread({ threadId: `other-${nth}` }))?.metadata, { by: `resource-${made + 1}` })
    }),
  },
  {
    name: '[M1.3] [R1.6] two writers that patch the metadata of one thread keep every key',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await one.createThread({ id: threadId, resourceId, now: tick() })
      const patch = (store: ThreadStore, prefix: string) =>
        thrice((index) => store.patchThread({ threadId }, { metadata: { [prefix + index]: index, shared: prefix } }))
      await together(() => patch(one, 'a'), () => patch(two, 'b'))
      const thread = await two.getThread({ threadId })
      assert.deepEqual(Object.keys(thread?.metadata ?? {}).toSorted(), [...sixKeys, 'shared'])
      assert.deepEqual(await one.getThread({ threadId }), thread)
    }),
  },
  {
    name: '[M2.2] [M2.4] [R1.6] two writers that merge into one working memory keep every field and every version',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const of = { scope: 'resource', resourceId: `resource-${nth}` } as const
      const merge = (store: ThreadStore, prefix: string) =>
        thrice((index) => store.mergeWorkingMemory(of, { merge: { fields: { [prefix + index]: index } } }))
      await together(() => merge(one, 'a'), () => merge(two, 'b'))
      const memory = await two.getWorkingMemory(of)
      assert.deepEqual(Object.keys((memory?.value as { fields?: object } | undefined)?.fields ?? {}).toSorted(), sixKeys)
      assert.deepEqual((await one.listWorkingMemory(of, { limit: 100 })).map(({ version }) => version), countFrom(1, 6).toReversed())
    }),
  },
  {
    name: '[M2.3] [R1.6] of two changes of working memory that expect the same version one is made',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const of = { scope: 'thread', threadId, resourceId } as const
      await one.createThread({ id: threadId, resourceId, now: tick() })
      await one.mergeWorkingMemory(of, { set: 'first' })
      const answers = await together(
        () => answerOr(one.mergeWorkingMemory(of, { set: 'one', expectedVersion: 1 }), 'working_memory_conflict'),
        () => answerOr(two.mergeWorkingMemory(of, { set: 'two', expectedVersion: 1 }), 'working_memory_conflict'),
      )
      const made = answers.findIndex((answer) => answer !== 'working_memory_conflict')
      assert.equal(answers[1 - made], 'working_memory_conflict')
      const memory = await two.getWorkingMemory(of)
      assert.deepEqual([memory?.version, memory?.value], [2, made === 0 ? 'one' : 'two'])
    }),
  },
  {
    name: '[M1.1] [M1.3] [R1.6] a message that both save is one message; two patches of its metadata are both kept',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      await one.createThread({ id: threadId, resourceId, now: tick() })
      const save = (store: ThreadStore, text: string) =>
        store.saveMessages([{ scope: { threadId }, messages: [message('same', threadId, text), message(text, threadId)] }])
      await together(() => save(one, 'a'), () => save(two, 'b'))
      const { rows } = await two.listRows({ threadId }, { limit: 100 })
      assert.deepEqual(rows.map(({ messageId }) => messageId).toSorted(), ['a', 'b', 'same'])
      assert.deepEqual(ascending(rows.map(({ seq }) => seq ?? 0)), countFrom(1, 3))
      const patch = (store: ThreadStore, prefix: string) => thrice((index) => {
        const content = { metadata: { [prefix + index]: index } }
        return store.updateMessages([{ scope: { threadId }, patches: [{ id: 'same', content }] }])
      })
      await together(() => patch(one, 'a'), () => patch(two, 'b'))
      const [changed] = (await one.listRows({ threadId }, { limit: 100, messageIds: ['same'] })).rows
      assert.deepEqual(Object.keys(changed?.content.metadata ?? {}).toSorted(), sixKeys)
    }),
  },
  {
    name: '[M1.4] [R1.6] a clone that is made while rows are appended holds all rows of that write or none',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threadId = `thread-${nth}`
      const clone = `clone-${nth}`
      for (const id of ['a', 'b']) await acceptOne(one, send(id, { threadId, ...persisted }))
      await together(
        () => one.cloneThread({ threadId }, { id: clone, metadata: {}, now: tick() }),
        () => two.saveRows({ threadId }, [row('c'), row('d'), row('e')]),
      )
      assert.deepEqual(await rowIds(two, threadId), ['a', 'b', 'c', 'd', 'e'])
      const copied = (await rowIds(two, clone)).map((id) => id.slice(0, 1))
      assert.deepEqual(copied, copied.length === 2 ? ['a', 'b'] : ['a', 'b', 'c', 'd', 'e'])
      await two.saveRows({ threadId: clone }, [row('own')])
      assert.deepEqual((await rowIds(one, clone)).at(-1), 'own')
    }),
  },
  {
    name: '[M1.4] [R1.6] of two clones under one id one is made',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const clone = `clone-${nth}`
      for (const threadId of [`left-${nth}`, `right-${nth}`]) await acceptOne(one, send(threadId, { threadId, ...persisted }))
      const answers = await together(
        () => answerOr(one.cloneThread({ threadId: `left-${nth}` }, { id: clone, metadata: {}, now: tick() }), 'thread_exists'),
        () => answerOr(two.cloneThread({ threadId: `right-${nth}` }, { id: clone, metadata: {}, now: tick() }), 'thread_exists'),
      )
      const made = answers.findIndex((answer) => answer !== 'thread_exists')
      assert.equal(answers[1 - made], 'thread_exists')
      assert.deepEqual((await rowIds(two, clone)).map((id) => id.slice(0, id.indexOf('~'))), [made === 0 ? `left-${nth}` : `right-${nth}`])
    }),
  },
  {
    name: '[M3.1] [R1.6] two claims of titles get different threads',
    run: (harness) => rounds(harness, async ({ nth, one, two, together }) => {
      const threads = [0, 1, 2].map((index) => `thread-${nth}-${index}`)
      for (const threadId of threads) {
        const run = await start(one, 'a', { threadId })
        await commit(one, run, { rows: [row('said', 'assistant')], drain: finish.drain, end: { status: 'finished', titleUntil: 0 } })
      }
      const claim = { now: Date.now(), until: Date.now() + 3_600_000, limit: 10, agentIds: ['agent-1'] }
      const claims = await together(() => one.claimTitles({ ...claim, owner: 'p1' }), () => two.claimTitles({ ...claim, owner: 'p2' }))
      assert.deepEqual(claims.flat().map(({ threadId }) => threadId).toSorted(), threads)
    }),
  },
]
