import type { Kind, KindPlan, KindResult, Mutant } from '../kind.ts'
import { FaultRound, type FaultRoundPlan } from './round.ts'

type Part = Pick<FaultRoundPlan, 'slots' | 'store' | 'process' | 'sweep' | 'commitsFailMs'>

/** The part of a round that shows a mutant. */
function part(what: Part): Mutant['run'] {
  return (plan: KindPlan): Promise<KindResult> => new FaultRound({ ...plan, ...what }).run()
}

/** Long enough for many attempts, also where a busy machine makes each of them slow. */
const commitsFailMs = 5_000

/** What Heed did before, one item each, with the checks that find it. */
export const mutants: Kind['mutants'] = {
  'takes over its own thread while a host runs it': {
    fault: { file: 'store/core/begin.ts', changes: [['(thread.owner === owner || isAlive(tables, thread.owner))', 'isAlive(tables, thread.owner)']] },
    finds: ['oneTaker'],
    run: part({ slots: 1, store: ['heartbeats fail', 'heartbeats fail'], process: [] }),
  },
  'claims a thread again with the lease of an earlier host': {
    fault: {
      file: 'thread/runtime/runtime.ts',
      changes: [
        ['this.#laterClaims.add(fence.threadId, error, fence)', 'if (!this.#laterClaims.has(fence.threadId)) this.#laterClaims.add(fence.threadId, error, fence)'],
        ['if (!(again && (await this.wake(threadId, again))) && !this.#hosts.has(threadId)) await', 'if (again) await this.wake(threadId, again)\n      else await'],
      ],
    },
    slow: true,
    finds: ['heals', 'nothingStuck'],
    run: part({ slots: 2, store: ['heartbeats fail', 'heartbeats fail', 'heartbeats fail'], process: ['kill', 'kill'] }),
  },
  'drops results after a lapse without asking the store': {
    fault: { file: 'thread/runtime/process-lease.ts', changes: [['if (held[index]) host.confirmLease()', 'if (!host) host.confirmLease()']] },
    finds: ['noResultLost', 'heals', 'nothingStuck'],
    run: part({ slots: 1, store: [], process: ['block', 'block', 'block'] }),
  },
  'stores sends although the store failed permanently': {
    fault: { file: 'thread/send/send.ts', changes: [['    if (runtime.lease.failure) throw runtime.lease.failure\n', '']] },
    finds: ['failStop'],
    run: part({ slots: 1, store: ['gone', 'gone', 'gone'], process: [] }),
  },
  'is ready although the store failed permanently': {
    fault: { file: 'http/routes/operations.ts', changes: [['              if (threads.lease.failure) throw threads.lease.failure\n', '']] },
    finds: ['notReady'],
    run: part({ slots: 1, store: ['gone', 'gone', 'gone'], process: [] }),
  },
  'does not notice that the store works again': {
    fault: { file: 'thread/runtime/process-lease.ts', changes: [['    this.#failure = undefined\n', '']] },
    finds: ['heals', 'refusedForFaults'],
    run: part({ slots: 1, store: ['gone', 'gone'], process: [] }),
  },
  'does not cancel what is pending when an abort arrives with the end of a run': {
    fault: { file: 'thread/runtime/host.ts', changes: [['while (this.#clearUpTo !== undefined) await this.#cancelPending()', '']] },
    finds: ['clearedAtEnd'],
    run: part({ slots: 1, store: [], process: ['abort at the end', 'abort at the end', 'abort at the end'] }),
  },
  'takes every call of a later attempt for begun': {
    fault: { file: 'thread/runtime/run-rows.ts', changes: [['const begun = run.started.includes(toolCallId)', 'const begun = run.attempts > 1']] },
    finds: ['interruptedHadBegun'],
    run: part({ slots: 1, store: [], process: ['kill after a decision', 'kill after a decision', 'kill after a decision', 'kill after a decision'] }),
  },
  'counts failures of the store as attempts, once a second': {
    fault: {
      file: 'thread/runtime/sweeper.ts',
      changes: [['lease.excused === true || isStoreFailure(cause)', 'lease.excused === true'], ['retryMs * 2 ** (count - 1)', 'retryMs']],
    },
    finds: ['noneParked'],
    run: part({ slots: 1, store: ['commits fail'], process: [], commitsFailMs }),
  },
  'calls the model once a second while the store fails': {
    fault: { file: 'thread/runtime/sweeper.ts', changes: [['retryMs * 2 ** (count - 1)', 'retryMs']] },
    finds: ['noStorm'],
    run: part({ slots: 1, store: ['commits fail'], process: [], commitsFailMs }),
  },
  'waits for a lease that expires an hour after its length': {
    fault: { file: 'store/core/lease.ts', changes: [[' && left <= 2 * heartbeat.length', '']] },
    slow: true,
    finds: ['heals', 'nothingStuck'],
    run: part({ slots: 1, store: ['clock back'], process: ['kill', 'kill'] }),
  },
  'ends a sweep at the first thread that can not be claimed': {
    fault: { file: 'thread/runtime/runtime.ts', changes: [['        return false\n      })\n      if (claimed) taken++', '        throw error\n      })\n      if (claimed) taken++']] },
    finds: ['sweepsPast', 'opens'],
    run: part({ slots: 2, store: [], process: [], sweep: true }),
  },
  'keeps the failure of its first flush': {
    fault: {
      file: 'store/sqlite/flush.ts',
      changes: [['    await log.#handle().catch((error: unknown) => {\n      throw error instanceof NotSynced ? error.failure : error\n    })\n', ''], ['      this.#opened = undefined\n', '']],
    },
    finds: ['heals', 'refusedForFaults'],
    run: part({ slots: 1, store: [], process: ['exhaust at flush', 'exhaust at flush'] }),
  },
}
