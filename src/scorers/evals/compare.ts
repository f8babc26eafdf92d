import type { EvalResult } from './run-evals.ts'

/** How the scores of one scorer changed between two runs. */
export interface ScoreChange {
  scorerId: string
  before: number
  after: number
  /** Cases that both runs scored, by what became of their score (the mean of their trials). */
  higher: string[]
  lower: string[]
  same: number
  /**
   * The probability of a change at least as uneven, if higher and lower were equally likely: the two-sided sign test. 1 where no case
   * changed.
   */
  p: number
}

/** Compares two runs case by case, by the ids of the cases. Cases that only one run has are left out. */
export function compareEvals(before: Pick<EvalResult, 'items'>, after: Pick<EvalResult, 'items'>): ScoreChange[] {
  const [old, recent] = [meansOf(before), meansOf(after)]
  return [...recent.keys()].filter((id) => old.has(id)).map((scorerId) => change(scorerId, old.get(scorerId)!, recent.get(scorerId)!))
}

type Means = Map<string, Map<string, number>>

function meansOf({ items }: Pick<EvalResult, 'items'>): Means {
  const sums: Map<string, Map<string, { sum: number; count: number }>> = new Map()
  for (const { id, scores } of items) {
    for (const [scorerId, score] of Object.entries(scores)) {
      const cases = sums.get(scorerId) ?? new Map<string, { sum: number; count: number }>()
      const { sum, count } = cases.get(id) ?? { sum: 0, count: 0 }
      sums.set(scorerId, cases.set(id, { sum: sum + score, count: count + 1 }))
    }
  }
  return new Map([...sums].map(([scorer, cases]) => [scorer, new Map([...cases].map(([id, { sum, count }]) => [id, sum / count]))]))
}

function change(scorerId: string, before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): ScoreChange {
  const shared = [...after.keys()].filter((id) => before.has(id))
  const higher = shared.filter((id) => after.get(id)! > before.get(id)!)
  const lower = shared.filter((id) => after.get(id)! < before.get(id)!)
  const mean = (cases: ReadonlyMap<string, number>) => shared.reduce((sum, id) => sum + cases.get(id)!, 0) / Math.max(1, shared.length)
  return {
    scorerId, before: mean(before), after: mean(after), higher, lower, same: shared.length - higher.length - lower.length,
    p: signTest(higher.length, lower.length),
  }
}

/** The two-sided sign test, by the logarithms of the binomial coefficients: thousands of cases do not overflow. */
export function signTest(higher: number, lower: number): number {
  const total = higher + lower
  if (total === 0) return 1
  let [logChoose, sum] = [0, 0]
  for (let count = 0; count <= Math.min(higher, lower); count++) {
    if (count > 0) logChoose += Math.log(total - count + 1) - Math.log(count)
    sum += Math.exp(logChoose - total * Math.LN2)
  }
  return Math.min(1, 2 * sum)
}
