import { Chance } from '../../src/store/conformance/fixture.ts'
import type { Kind, KindPlan, KindResult, Mutant } from './kind.ts'
import { Round } from './round.ts'

const mutants: Record<string, Mutant> = {
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
    fault: { file: 'thread/stream/snapshot.ts', changes: [['messages: transcriptOf(messages)', 'messages: transcriptOf(messages.slice(0, -1))']] },
    finds: ['trueSnapshots'],
  },
}

/** Kills and stops of processes that send, answer, decide and watch. */
export const load: Kind = {
  name: 'load',
  entry: 'child.ts',
  run: (plan) => round(plan, { slots: 1 + new Chance(plan.seed).below(4), kills: 20, stops: 5 }),
  mutants: Object.fromEntries(Object.entries(mutants).map(([name, mutant]) => [name, { ...mutant, run: (plan) => round(plan, { slots: 2, kills: 10, stops: 0 }) }])),
}

async function round(plan: KindPlan, size: { slots: number; kills: number; stops: number }): Promise<KindResult> {
  const { kills, stops, retired, violations, facts } = await new Round({ ...plan, ...size }).run()
  return { faults: { ...Object.fromEntries(Object.entries(kills).map(([point, count]) => [`kill ${point}`, count])), stop: stops }, violations, facts: { ...facts, retired } }
}
