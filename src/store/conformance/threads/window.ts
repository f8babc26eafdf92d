import assert from 'node:assert/strict'
import type { MessageRow } from '../../../message/row.ts'
import type { ThreadStore, Window } from '../../contract/threads.ts'
import { windowStart } from '../../contract/window.ts'
import { acceptOne, alive, commit, finish, ids, row, scope, send, signalRow, start, windows, type StoreCase } from '../fixture.ts'

/** One turn: the user's row, the extra rows, and a reply in two steps with a tool result between them. */
async function turn(store: ThreadStore, index: number, window: Window, extra: MessageRow[] = []): Promise<string[]> {
  const { fence } = await acceptOne(store, send(`u${index}`))
  assert.ok(fence)
  const begun = await store.beginRun(fence, windows(window))
  assert.ok(begun)
  const messageId = `m${index}`
  const part = (id: string, role: 'assistant' | 'tool') => row(`${messageId}/${id}`, role, id, { messageId })
  await store.commitStep(
    fence, { runId: begun.run.runId, step: 0, rows: [...extra, part('0', 'assistant'), part('0/results', 'tool')], drain: true },
  )
  await store.commitStep(fence, { runId: begun.run.runId, step: 1, rows: [part('1', 'assistant')], ...finish })
  return ids(begun.rows)
}

const userRows = (rows: readonly string[]) => rows.filter((id) => /^u\d+$/.test(id))

export const windowCases: StoreCase[] = [
  {
    name: '[P1.3] the window grows to its high mark, is cut by a chunk at a turn, and stays there until it is full again',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      const starts: Array<string | undefined> = []
      for (let index = 0; index < 12; index += 1) {
        const shown = await turn(store, index, { low: 4, high: 8 })
        starts.push(shown[0])
        const counted = shown.filter((id) => /^u\d+$/.test(id) || id.endsWith('/0')).length
        assert.ok(counted <= 9, 'at most the high mark, and the rest of a turn')
        assert.ok(counted >= Math.min(4, 2 * index + 1), 'never less than the low mark')
        assert.equal(shown.at(-1), `u${index}`)
      }
      // Two messages per turn: nine are cut by four, which is two turns, and the next cut follows after two turns.
      assert.deepEqual(starts, ['u0', 'u0', 'u0', 'u0', 'u2', 'u2', 'u4', 'u4', 'u6', 'u6', 'u8', 'u8'])
    },
  },
  {
    name: '[P1.6] equal marks slide by one: so many messages before the input, from a turn on',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      const starts: Array<string | undefined> = []
      for (let index = 0; index < 5; index += 1) starts.push((await turn(store, index, { low: 2, high: 2 }))[0])
      assert.deepEqual(starts, ['u0', 'u0', 'u1', 'u2', 'u3'])
      const odd = await turn(store, 5, { low: 3, high: 3 })
      assert.equal(odd[0], 'u3', 'one more than three: the window would begin with an answer')
    },
  },
  {
    name: 'the window of the next run can be read without starting one',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      for (let index = 0; index < 6; index += 1) {
        const expected = index === 0 ? [] : ids(await store.readWindow(scope, { low: 4, high: 6 }, 1))
        assert.deepEqual([...expected, `u${index}`], await turn(store, index, { low: 4, high: 6 }))
      }
      assert.deepEqual(await store.readWindow(scope, false, 1), [])
    },
  },
  {
    name: "signals that no user sent, context rows and tool results don't count",
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      for (let index = 0; index < 3; index += 1) {
        const noise = [signalRow(`r${index}`, 'reactive'), row(`c${index}`, 'context'), signalRow(`s${index}`, 'state')]
        const shown = await turn(store, index, { low: 6, high: 6 }, noise)
        assert.deepEqual(userRows(shown), ['u0', 'u1', 'u2'].slice(0, index + 1))
      }
      assert.deepEqual(userRows(await turn(store, 3, { low: 6, high: 6 })), ['u0', 'u1', 'u2', 'u3'])
      assert.deepEqual(userRows(await turn(store, 4, { low: 6, high: 6 })), ['u1', 'u2', 'u3', 'u4'])
    },
  },
  {
    name: 'a thread that only gets signals has a window too',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      const marks = { low: 3, high: 6 }
      let shown: string[] = []
      for (let index = 0; index < 40; index += 1) {
        const { fence } = await acceptOne(store, send(`s${index}`, { rows: [signalRow(`s${index}`, index === 0 ? 'user' : 'reactive')] }))
        assert.ok(fence)
        const begun = await store.beginRun(fence, windows(marks))
        assert.ok(begun)
        shown = ids(begun.rows)
        await store.commitStep(fence, { runId: begun.run.runId, step: 0, rows: [row(`m${index}`, 'assistant')], ...finish })
      }
      const answers = shown.filter((id) => id.startsWith('m')).length
      assert.ok(answers >= marks.low && answers <= marks.high, `${answers} answers`)
    },
  },
  {
    name: "a turn begins with the user's last stored message, also beside a run, and not with a rejected one",
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      const reactive = async () => {
        const run = await start(store, 'r', { rows: [signalRow('r', 'reactive')] })
        await commit(store, run, { rows: [row('m', 'assistant')], ...finish })
      }
      const shown = async () => {
        const { fence } = await acceptOne(store, send('last'))
        assert.ok(fence)
        const begun = await store.beginRun(fence, windows({ low: 1, high: 2 }))
        return ids(begun?.rows ?? [])
      }
      const beside = await start(store, 'u')
      await acceptOne(store, send('note', { ifActive: { behavior: 'persist' } }))
      await commit(store, beside, { rows: [row('said', 'assistant')], ...finish })
      await reactive()
      assert.deepEqual(await shown(), ['note', 'r', 'm', 'last'])

      await store.deleteThread(scope)
      await commit(store, await start(store, 'u'), { rows: [row('said', 'assistant')], ...finish })
      await commit(store, await start(store, 'bad', { rows: [row('bad-1'), row('bad-2')] }), { end: { status: 'rejected' } })
      await reactive()
      assert.deepEqual(await shown(), ['u', 'said', 'r', 'm', 'last'])
    },
  },
  {
    name: 'without history the window has the rows of the run alone, and never fewer',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      await turn(store, 0, false)
      assert.deepEqual(await turn(store, 1, false), ['u1'])
      const { fence } = await acceptOne(store, send('many', { rows: ['x', 'y', 'z', 'w'].map((id) => row(id)) }))
      assert.ok(fence)
      const begun = await store.beginRun(fence, windows({ low: 1, high: 1 }))
      assert.deepEqual(ids(begun?.rows ?? []).slice(-4), ['x', 'y', 'z', 'w'])
      assert.equal(ids(begun?.rows ?? [])[0], 'u1', 'the message before the input, from its turn on')
    },
  },
  {
    name: 'the low mark counts existing messages, also after some were deleted',
    async run({ store: open }) {
      const store = await open()
      await alive(store, 'p1')
      for (let index = 0; index < 6; index += 1) await turn(store, index, { low: 2, high: 4 })
      await store.deleteMessages(scope, ['u3', 'm3', 'u4', 'm4', 'u5', 'm5'])
      const shown = await turn(store, 6, { low: 4, high: 4 })
      assert.deepEqual(userRows(shown), ['u1', 'u2', 'u6'], 'before u6: m2, u2, m1, u1')
      await store.deleteMessages(scope)
      assert.deepEqual(await turn(store, 7, { low: 2, high: 4 }), ['u7'])
    },
  },
  {
    name: 'a message counts once, however many rows it has',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'u0')
      for (let step = 0; step < 30; step += 1) {
        await commit(store, run, { step, rows: [row(`m/${step}`, 'assistant', '', { messageId: 'm' })], drain: true })
      }
      await commit(store, run, { step: 30, ...finish })
      const { fence } = await acceptOne(store, send('u1'))
      assert.ok(fence)
      const begun = await store.beginRun(fence, windows({ low: 3, high: 3 }))
      assert.equal(begun?.rows.length, 32)
    },
  },
  {
    name: 'the arithmetic of the window: at least low, at most high, and no cut before it is full again',
    async run() {
      for (let low = 1; low <= 12; low += 1) {
        for (let high = low; high <= 30; high += 1) {
          let before = 0
          for (let count = 0; count <= 200; count += 1) {
            const start = windowStart(count, { low, high })
            assert.ok(count - start >= Math.min(low, count), `${count} messages, ${low} to ${high}: ${start}`)
            assert.ok(count - start <= high)
            if (start !== before) assert.equal(count - 1 - before, high, 'it was full')
            before = start
          }
        }
      }
    },
  },
]
