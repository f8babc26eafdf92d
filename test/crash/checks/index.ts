import type { Check, Evidence, Violation } from './evidence.ts'
import { allAnswered, noTrouble, trueOutcomes, trueRefusals } from './outcomes.ts'
import { noLateWords, oneHolder, oneWriter, samePrompts } from './runs.ts'
import { answered, inOrder, nothingLost, nothingStuck, nothingTwice, shownOnce } from './signals.ts'
import { trueSnapshots } from './snapshots.ts'
import { callsSettled, effectsKnown, noEffectTwice, recordedFirst } from './tools.ts'
import { heardLive, nobodyDeaf, noGap, noSnapshotInCalm, sameForAll } from './watching.ts'

export type { Evidence, Violation } from './evidence.ts'

const soundFile: Check = ({ ledger }) => (ledger.integrity === 'ok' ? [] : [{ promise: 'A1', what: `the database is damaged: ${ledger.integrity}` }])

/** Everything that has to hold after a round, each as a function of the evidence alone. */
export const checks: Readonly<Record<string, Check>> = {
  soundFile, nothingLost, nothingTwice, shownOnce, inOrder, answered, nothingStuck,
  trueOutcomes, allAnswered, trueRefusals, noTrouble,
  noEffectTwice, recordedFirst, effectsKnown, callsSettled,
  oneWriter, oneHolder, noLateWords, samePrompts,
  sameForAll, noGap, nobodyDeaf, trueSnapshots, noSnapshotInCalm, heardLive,
}

export function judge(evidence: Evidence): Violation[] {
  return Object.entries(checks).flatMap(([name, check]) => check(evidence).map(({ promise, what }) => ({ promise, what: `${name}: ${what}` })))
}
