import type { Fault } from '../crash/program.ts'

/** Builds that are broken on purpose, each with the checks of which at least one has to find it. */
export const mutants: ReadonlyArray<{ name: string; fault: Fault; finds: readonly string[] }> = [
  {
    name: 'compares no fence',
    fault: {
      file: 'store/core/lease.ts',
      changes: [['thread && thread.epoch === fence.epoch && thread.owner === fence.owner ? thread : undefined', 'thread']],
    },
    finds: ['oneWriter', 'oneHolder', 'samePrompts', 'callsSettled', 'noEffectTwice', 'trueSnapshots', 'answered', 'sameForAll'],
  },
  {
    name: 'takes a lost connection for a commit',
    fault: {
      file: 'store/postgres/connection.ts',
      changes: [['if (state.doubt && (await this.#wasCommitted(state.doubt))) return state.doubt.computed', 'if (state.doubt) return state.doubt.computed']],
    },
    finds: ['nothingLost', 'trueOutcomes', 'harness', 'answered', 'effectsKnown', 'samePrompts', 'noGap', 'trueSnapshots'],
  },
]
