import { median } from './median.mjs'

/**
 * What the samples say. A comparison is the ratio of two medians, beside the lowest and highest ratio of a single round; without a
 * second side it is the median itself. It is steady when every round alone would have been judged the same.
 */
export function judge(benchmark, samples) {
  return {
    name: benchmark.name,
    title: benchmark.title,
    date: new Date().toISOString(),
    rounds: Math.min(...Object.values(samples).map((rounds) => rounds.length)),
    sides: Object.fromEntries(Object.entries(samples).map(([side, rounds]) => [side, spreads(rounds)])),
    comparisons: benchmark.comparisons.map((comparison) => compared(comparison, samples)),
  }
}

function spreads(rounds) {
  return Object.fromEntries(Object.keys(rounds[0]).map((measure) => [measure, spread(rounds.map((sample) => sample[measure]))]))
}

function spread(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

function compared({ measure, of, to, atMost, atLeast, unit }, samples) {
  const values = samples[of].map((sample) => sample[measure])
  const base = to === undefined ? undefined : samples[to].map((sample) => sample[measure])
  const result = base
    ? { ...spread(values.map((value, round) => value / base[round])), median: median(values) / median(base) }
    : spread(values)
  const wanted = { atMost, atLeast }
  return { measure, of, to, unit, ...result, ...wanted, ok: meets(result.median, wanted), steady: meets(result.min, wanted) === meets(result.max, wanted) }
}

function meets(value, { atMost, atLeast }) {
  if (atMost !== undefined) return value <= atMost
  return atLeast === undefined ? undefined : value >= atLeast
}
