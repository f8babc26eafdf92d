import type { KindPlan, KindResult, Mutant } from '../kind.ts'
import { Still, Storm, type Scene } from './round.ts'

const still = (...scenes: Scene[]) => (plan: KindPlan): Promise<KindResult> => new Still(plan).still(scenes)
const storm = (plan: KindPlan): Promise<KindResult> => new Storm(plan, { slots: 2, processes: 4, kills: false }).storm()

/** The old behaviors of threads that end and of aborts. */
export const mutants: Readonly<Record<string, Mutant>> = {
  'begins again at epoch 0 after a deletion': {
    fault: { file: 'store/core/child-threads.ts', changes: [['  tables.raiseEpochFloor(thread.epoch + 1)\n', '']] },
    finds: ['epochsGrow'],
    run: storm,
  },
  'tells no process that a thread was deleted': {
    fault: { file: 'thread/runtime/ended-threads.ts', changes: [['  runtime.peers.announceEnded(threadIds)\n', '']] },
    finds: ['formerEnds'],
    run: still('delete', 'delete'),
  },
  'takes the pending signals of a deleted thread for persisted': {
    fault: { file: 'thread/send/outcomes.ts', changes: [["const deletedOutcome: SignalOutcome = { action: 'discarded', reason: 'deleted' }", "const deletedOutcome: SignalOutcome = { action: 'persisted' }"]] },
    slow: true,
    finds: ['trueOutcomes'],
    run: storm,
  },
  'keeps the epochs of a backup': {
    fault: { file: 'store/sqlite/backup.ts', changes: [['SET epoch = ?1, life = ?1, owner = NULL', 'SET owner = iif(?1 < 0, owner, NULL)'], [".prepare('UPDATE heed_epochs SET floor = ?').run(floor)", '']] },
    finds: ['epochsGrow'],
    run: still('restore', 'restore'),
  },
  'goes on with the cursors of a former life': {
    fault: { file: 'thread/stream/live.ts', changes: [['    if (!isKnown) return\n    this.startOverReason', '    if (isKnown || !isKnown) return\n    this.startOverReason']] },
    finds: ['lifeBegins', 'noFormerWords', 'snapshotsOfLife'],
    run: still('delete', 'restore', 'delete'),
  },
  'waits for a run that was replaced, and closes without it': {
    fault: {
      file: 'thread/runtime/runtime.ts',
      changes: [
        ['before?.host.hasWork ? this.#endedOrFormer(before) : before?.done', 'before?.done'],
        ['const working = [...this.#unfinished]', 'const working = [...this.#hosts.values()]'],
      ],
    },
    slow: true,
    finds: ['closesInTime', 'nothingHangs', 'formerEnds'],
    run: still('replace and close', 'replace and close'),
  },
  'answers an abort before it is stored': {
    fault: { file: 'thread/control/abort.ts', changes: [['      await within(runtime, host.runEnded)\n      return undefined\n', '      return { aborted: true, runId }\n']] },
    finds: ['trueAborts'],
    run: storm,
  },
  'clears nothing when the run is already over': {
    fault: { file: 'store/core/mailbox.ts', changes: [['pending.filter((mail) => wanted.has(mail.id))', 'pending.filter((mail) => wanted.has(`${mail.id} `))']] },
    finds: ['clearedTruly'],
    run: (plan) => new Still(plan).still(['abort', 'abort', 'abort', 'abort', 'abort', 'abort'], 1),
  },
  'asks for a second abort in a loop': {
    fault: { file: 'thread/control/abort.ts', changes: [['      await within(runtime, host.runEnded)\n      return undefined\n', '      return undefined\n']] },
    finds: ['abortsAnswered'],
    run: storm,
  },
}
