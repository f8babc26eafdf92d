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
  {
    name: 'answers a send before it is committed',
    fault: {
      file: 'store/postgres/connection.ts',
      changes: [
        ['...(asserts && mode !== \'read\' && { done: committing }),', ''],
        ['      await transaction.commit()\n', '      void transaction.commit().catch(() => {})\n'],
      ],
    },
    finds: ['nothingLost'],
  },
  {
    name: 'locks no thread',
    fault: { file: 'store/postgres/transaction.ts', changes: [["'ORDER BY locked.id FOR NO KEY UPDATE'", "'ORDER BY locked.id'"]] },
    finds: ['nothingLost', 'nothingTwice', 'inOrder', 'answered', 'nothingStuck', 'trueOutcomes', 'oneWriter', 'oneHolder', 'samePrompts', 'callsSettled', 'harness'],
  },
  {
    name: 'does not notice that notifications were lost',
    fault: {
      file: 'bus/postgres/hub.ts',
      changes: [['    if (number !== inbox.last + 1) {', '    if (number < 0) {'], ['        handler.onLoss()\n      }\n      return', '      }\n      return']],
    },
    finds: ['noGap', 'heardInTheEnd'],
  },
]
