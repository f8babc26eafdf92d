import type { Fault } from '../crash/program.ts'

export interface Mutant {
  name: string
  fault: Fault
  /** Of these checks at least one has to find it. */
  finds: readonly string[]
  /** It does harm where nothing else fails, so CI can find it in a short round. */
  quick?: boolean
}

/** Builds that are broken on purpose. */
export const mutants: readonly Mutant[] = [
  {
    name: 'compares no fence',
    fault: {
      file: 'store/core/lease.ts',
      // A process that was paused asks the store before it goes on, so that few of its writes are late: here some processes lose their leases while they run.
      changes: [
        ['thread && thread.epoch === fence.epoch && thread.owner === fence.owner ? thread : undefined', 'thread'],
        ['if (left >= 0 && left <= 2 * heartbeat.length) return true', 'if (left >= 0 && left <= 2 * heartbeat.length) return Math.random() > 0.1'],
      ],
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
    name: 'accepts a signal and stores nothing of it',
    fault: { file: 'store/core/accept.ts', changes: [['  tables.addMail(thread, mail)', "  if (mail.route !== 'persist' || mail.ord % 3 > 0) tables.addMail(thread, mail)"]] },
    finds: ['nothingLost', 'trueOutcomes'],
  },
  {
    name: 'repeats a tool call that had begun when its process ended',
    fault: { file: 'thread/runtime/run-rows.ts', changes: [['if (begun && !idempotent(toolName))', "if (begun && toolName === '')"]] },
    finds: ['noEffectTwice'],
  },
  {
    name: 'takes the signals of a mailbox in the wrong order',
    fault: { file: 'store/sql/sql.ts', changes: [["WHERE thread = ? AND open = 1 AND state = 'pending' ORDER BY ord`", "WHERE thread = ? AND open = 1 AND state = 'pending' ORDER BY ord DESC`"]] },
    finds: ['inOrder'],
  },
  {
    name: 'drops chunks on their way to subscribers of another process',
    fault: { file: 'thread/cluster/live-events.ts', changes: [['for (const event of events) live.follow(event)', 'for (const event of events) if (Math.random() > 0.05) live.follow(event)']] },
    finds: ['noGap', 'sameForAll', 'trueSnapshots', 'heardInTheEnd'],
    quick: true,
  },
  {
    name: 'does not notice that chunks are missing',
    fault: {
      file: 'thread/cluster/live-events.ts',
      changes: [
        ['epoch !== this.#epoch || first !== this.#next)) return', 'epoch !== this.#epoch)) return'],
        ['if (this.#hasGap || (begins && this.#stateRequested)) live.skip()', 'if (Math.random() < 0.1) return false'],
      ],
    },
    finds: ['noGap', 'sameForAll', 'trueSnapshots', 'heardInTheEnd'],
  },
  {
    name: 'reads leases without a lock, so that they may be stale',
    fault: { file: 'store/postgres/transaction.ts', changes: [["'ORDER BY locked.id FOR NO KEY UPDATE'", "'ORDER BY locked.id'"]] },
    finds: ['oneHolder', 'oneWriter', 'nothingLost', 'nothingTwice', 'inOrder', 'samePrompts', 'answered', 'trueOutcomes', 'callsSettled', 'nothingOfRefused'],
  },
  {
    name: 'forgets outcomes that senders wait for',
    fault: { file: 'thread/send/waiters.ts', changes: [['?? []) resolve(outcome)', '?? []) if (Math.random() > 0.2) resolve(outcome)']] },
    finds: ['allAnswered'],
  },
]
