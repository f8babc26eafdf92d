import type { Check, Evidence, Violation } from './evidence.ts'
import { callsSettled, noEffectTwice, noLateWords, oneHolder, oneWriter, samePrompts } from './runs.ts'
import { answered, inOrder, nothingLost, nothingStuck, nothingTwice, shownOnce } from './signals.ts'
import { noGap, sameForAll } from './watching.ts'

export type { Evidence, Violation } from './evidence.ts'

const soundFile: Check = ({ ledger }) => (ledger.integrity === 'ok' ? [] : [{ promise: 'A1', what: `the database is damaged: ${ledger.integrity}` }])

/** Everything that has to hold after a round, each as a function of the evidence alone. */
export const checks: Readonly<Record<string, Check>> = {
  soundFile, nothingLost, nothingTwice, shownOnce, inOrder, answered, nothingStuck,
  noEffectTwice, callsSettled, oneWriter, oneHolder, noLateWords, samePrompts, sameForAll, noGap,
}

export function judge(evidence: Evidence): Violation[] {
  return Object.entries(checks).flatMap(([name, check]) => check(evidence).map(({ promise, what }) => ({ promise, what: `${name}: ${what}` })))
}
