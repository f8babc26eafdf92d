import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { ScorerResult } from './contract.ts'

/** The result of a scorer that is not of `createScorer()`. Throws `scorer_failed` where it is none: a missing score is no zero. */
export function checkedResult(scorerId: string, result: unknown): ScorerResult {
  const { score, notScorable } = isObject(result) ? result : {}
  if (isObject(notScorable) || (typeof score === 'number' && Number.isFinite(score))) return result as ScorerResult
  throw new HeedError('scorer_failed', `Scorer '${scorerId}' returned no number as its score, and did not say that there is none.`, {
    details: { scorerId },
  })
}
