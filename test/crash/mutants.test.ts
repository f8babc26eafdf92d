import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { buildProgram, type Fault } from './program.ts'
import { Round } from './round.ts'

/** What a broken build does, and the checks of which at least one has to find it. */
const mutants: Record<string, { fault: Fault; finds: string[] }> = {
  'runs tools before it is stored that they begin': {
    fault: {
      file: 'run/loop/loop.ts',
      changes: [
        ['  await run.commit({ step: run.step, rows: [checked.row], started:', '  const early = runCalls(run, recorder.calls)\n  await run.commit({ step: run.step, rows: [checked.row], started:'],
        ['await runCalls(run, recorder.calls), recorder)', 'await early, recorder)'],
      ],
    },
    finds: ['recordedFirst'],
  },
  'answers every outcome with `discarded`': {
    fault: { file: 'thread/send/waiters.ts', changes: [['?? []) resolve(outcome)', "?? []) resolve({ action: 'discarded' })"]] },
    finds: ['trueOutcomes'],
  },
  'hears nothing of what runs in other processes': {
    fault: { file: 'thread/cluster/remote-watching.ts', changes: [['if (replica.receive(message, from)) this.#requestState(replica, from)', '']] },
    finds: ['nobodyDeaf', 'heardLive'],
  },
  'runs every tool again after a crash': {
    fault: { file: 'thread/runtime/run-rows.ts', changes: [['if (begun && !idempotent(toolName))', "if (begun && toolName === '')"]] },
    finds: ['noEffectTwice'],
  },
  'leaves the newest message out of snapshots': {
    fault: { file: 'thread/watch/snapshot.ts', changes: [['messages: transcriptOf(messages)', 'messages: transcriptOf(messages.slice(0, -1))']] },
    finds: ['trueSnapshots'],
  },
}

const rounds = 8

describe('the checker', () => {
  const work = mkdtempSync(join(tmpdir(), 'heed-mutants-'))
  afterAll(() => rmSync(work, { recursive: true, force: true }))

  it.each(Object.entries(mutants).map(([name, mutant], index) => ({ name, ...mutant, index })))('finds a build that $name', async ({ fault, finds, index }) => {
    const folder = join(work, `${index}`)
    mkdirSync(folder)
    const program = await buildProgram(folder, fault)
    const found = new Set<string>()
    // Where a kill falls is chance: one round may miss what a fault does, all of them can't.
    for (let round = 0; round < rounds && !finds.some((check) => found.has(check)); round++) {
      const seed = 200 + 2 * index + 100 * round
      const { violations } = await new Round({ program, folder: join(folder, `round-${round}`), seed, slots: 2, kills: 10, stops: 0 }).run()
      for (const { what } of violations) found.add(what.slice(0, what.indexOf(':')))
    }
    expect(finds.filter((check) => found.has(check))).not.toEqual([])
  }, 240_000)
})
