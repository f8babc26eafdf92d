import assert from 'node:assert/strict'
import type { Fence, ThreadStore } from '../../contract/threads.ts'
import {
  accept, acceptOne, begin, commit, finish, ids, persisted, queued, row, rowIds, scope, send, start, states, status, wide, windows,
  withChance, type Chance, type StoreCase,
} from '../fixture.ts'

export const drainingCases: StoreCase[] = [
  {
    name: '[R2.1] a drain takes all signals that may enter, in acceptance order, after the rows of the step',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(
        store, send('b'), send('q', queued), send('foreign', { agentId: 'agent-2' }), send('c', { ifActive: { behavior: 'interrupt' } }),
        send('d'),
      )
      const { rows, taken, ended } = await commit(store, run, { rows: [row('said', 'assistant'), row('result', 'tool')], drain: true })
      assert.equal(ended, false)
      assert.deepEqual(ids(taken), ['b', 'c', 'd'])
      for (const mail of taken) assert.deepEqual([mail.state, mail.runId, mail.step], ['taken', 'run-of-a', 1])
      assert.deepEqual(rows.map(({ seq }) => seq), [2, 3])
      assert.deepEqual(taken.flatMap((mail) => mail.rows.map(({ seq, runId, step }) => [seq, runId, step])), [
        [4, 'run-of-a', 1], [5, 'run-of-a', 1], [6, 'run-of-a', 1],
      ])
      assert.deepEqual(await rowIds(store), ['a', 'said', 'result', 'b', 'c', 'd'])
      assert.deepEqual(await states(store), { a: 'consumed', b: 'taken', q: 'pending', foreign: 'pending', c: 'taken', d: 'taken' })
    },
  },
  {
    name: '[R2.1] a drain that takes nothing seals nothing; a commit without drain takes nothing',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await commit(store, run, { rows: [row('one', 'assistant')], drain: true })
      assert.deepEqual(await states(store), { a: 'taken' })
      await acceptOne(store, send('b'))
      const { taken } = await commit(store, run, { step: 1, rows: [row('two', 'assistant')], started: ['call'] })
      assert.deepEqual([taken, await states(store)], [[], { a: 'taken', b: 'pending' }])
    },
  },
  {
    name: '[R2.1] the rows of one send stay together, in their order',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store, 'a', { rows: [row('u1'), row('c1', 'context'), row('u2')] })
      assert.deepEqual(ids(run.taken[0]?.rows ?? []), ['u1', 'c1', 'u2'])
      assert.deepEqual(ids(run.rows), ['u1', 'c1', 'u2'])
      await accept(store, send('b', { rows: [row('u3'), row('u4')] }), send('c'))
      const { taken } = await commit(store, run, { drain: true })
      assert.deepEqual(taken.map((mail) => ids(mail.rows)), [['u3', 'u4'], ['c']])
    },
  },
  {
    name: '[R3.1] a run does not end while a signal may enter it',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await acceptOne(store, send('b'))
      const kept = await commit(store, run, { rows: [row('said', 'assistant')], ...finish })
      assert.deepEqual([kept.ended, kept.more, ids(kept.taken)], [false, false, ['b']])
      assert.equal(await status(store), 'running')
      const over = await commit(store, run, { step: 1, rows: [row('answered', 'assistant')], ...finish })
      assert.deepEqual([over.ended, over.more], [true, false])
      assert.deepEqual([await status(store), await states(store)], ['idle', { a: 'consumed', b: 'consumed' }])
    },
  },
  {
    name: '[R3.1] a run that must end leaves pending signals to the next one, under the same lease',
    async run({ store: open }) {
      const store = await open()
      const run = await start(store)
      await accept(store, send('b'), send('c'))
      const over = await commit(store, run, { rows: [row('said', 'assistant')], end: { status: 'finished' } })
      assert.deepEqual([over.ended, over.more, over.taken], [true, true, []])
      const late = await acceptOne(store, send('d'))
      assert.equal(late.route, 'deliver', 'between two runs the thread is still active')
      const next = await begin(store, run.fence)
      assert.deepEqual([next.run.runId, next.resumed, ids(next.taken)], ['run-of-b', false, ['b', 'c', 'd']])
      assert.equal(late.runId, next.run.runId)
      assert.deepEqual(ids(next.rows), ['a', 'said', 'b', 'c', 'd'])
      assert.equal((await store.getRun(scope, 'run-of-a'))?.status, 'finished')
    },
  },
  {
    name: '[R3.1] every final status of a run leaves pending signals to the next one',
    async run({ store: open }) {
      const store = await open()
      let run = await start(store, 'first')
      for (const end of ['finished', 'failed', 'aborted', 'parked', 'rejected'] as const) {
        await acceptOne(store, send(`after-${end}`))
        const over = await commit(store, run, { end: { status: end, error: { message: end } } })
        assert.deepEqual([over.ended, over.more], [true, true], end)
        assert.deepEqual((await store.getRun(scope, run.run.runId))?.error, { message: end })
        run = await begin(store, run.fence)
        assert.deepEqual(ids(run.taken), [`after-${end}`])
      }
    },
  },
  {
    name: '[R3.1] in every order of sends and ends, an idle thread has no pending signals and every send is answered once',
    async run({ store: open }) {
      const store = await open()
      await withChance((chance) => hammer(store, chance))
    },
  },
]

/** Sends and commits in random order, many of them at once, as a process would make them; then plays the thread to its end. */
async function hammer(store: ThreadStore, chance: Chance): Promise<void> {
  const runner = new Runner(store, chance)
  runner.heard(await acceptOne(store, send('in-0')))
  let count = 1
  for (let round = 0; round < 60; round += 1) {
    const actions: Array<() => Promise<unknown>> = [() => runner.step()]
    for (let left = chance.below(4); left > 0; left -= 1) {
      const id = `in-${count++}`
      const kind = chance.pick([{}, {}, queued, persisted])
      actions.push(async () => runner.heard(await acceptOne(store, send(id, kind))))
    }
    await Promise.all(chance.shuffle(actions).map((act) => act()))
    const thread = await store.getThread(scope)
    const waiting = await store.listSignals(scope, { states: ['pending', 'taken'] })
    if (thread?.status === 'idle') assert.deepEqual(ids(waiting), [], 'an idle thread has nothing waiting')
  }
  while (await runner.step()) { /* until nothing is left */ }
  assert.equal(await status(store), 'idle')
  const left = Object.values(await states(store)).filter((state) => state !== 'consumed')
  assert.deepEqual(left, [])
  const heard = (await rowIds(store)).filter((id) => id.startsWith('in-'))
  assert.equal(new Set(heard).size, heard.length, 'nothing twice')
  assert.equal(heard.length, count, 'nothing lost')
}

/** Holds the lease, if it is granted, and makes one call with it at a time. */
class Runner {
  readonly #store: ThreadStore
  readonly #chance: Chance
  #fence: Fence | undefined
  #run: { runId: string; step: number } | undefined
  #said = 0

  constructor(store: ThreadStore, chance: Chance) {
    this.#store = store
    this.#chance = chance
  }

  heard({ fence }: { fence?: Fence }): void {
    if (!fence) return
    assert.equal(this.#fence, undefined, 'one lease at a time')
    this.#fence = fence
  }

  /** False if it has nothing to do. During a call of the store the lease counts as released: a concurrent send may be granted it. */
  async step(): Promise<boolean> {
    const fence = this.#fence
    if (!fence) return false
    this.#fence = undefined
    if (await this.#act(fence)) {
      assert.equal(this.#fence, undefined, 'no other process has the lease')
      this.#fence = fence
    }
    return true
  }

  /** Begins a run or commits a step of it; returns whether the lease is still held. */
  async #act(fence: Fence): Promise<boolean> {
    if (!this.#run) {
      const begun = await this.#store.beginRun(fence, windows(wide))
      if (begun) this.#run = { runId: begun.run.runId, step: 0 }
      return begun !== null
    }
    const { runId, step } = this.#run
    const { ended, more } = await this.#store.commitStep(fence, {
      runId,
      step,
      rows: [row(`said-${this.#said++}`, 'assistant')],
      drain: this.#chance.below(3) > 0,
      ...(this.#chance.below(2) === 0 && { end: { status: 'finished' as const } }),
    })
    this.#run = ended ? undefined : { runId, step: step + 1 }
    return !ended || more
  }
}
