/** A stretch of time in which nothing happened, drawn shorter than it was. */
export interface Gap {
  from: number
  to: number
}

/** Where a time is on a line from 0 to 1. */
export interface Scale {
  from: number
  to: number
  gaps: readonly Gap[]
  x: (time: number) => number
  /** The time at a place. */
  timeAt: (x: number) => number
}

/** A distance between events that is this many times the median one is collapsed. */
const collapsedFrom = 20
/** Shorter stretches stay as they are. */
const leastGapMs = 1_000
/** All gaps together have at most this share of the line, and one of them at most that. */
const gapsShare = 0.4
const gapShare = 0.05

/** The scale of these times, within a range. Long stretches without an event are collapsed. */
export function scaleOf(times: readonly number[], { from, to }: { from: number; to: number }): Scale {
  const inside = [from, ...times.filter((time) => time > from && time < to), to].toSorted((one, other) => one - other)
  const gaps = gapsOf(inside)
  const width = Math.min(gapShare, gaps.length === 0 ? 0 : gapsShare / gaps.length)
  const skipped = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0)
  const perMs = (1 - width * gaps.length) / Math.max(1, to - from - skipped)
  // The places where the slope of the line changes.
  const corners: Array<{ time: number; x: number }> = [{ time: from, x: 0 }]
  for (const gap of gaps) {
    const { time, x } = corners.at(-1) ?? { time: from, x: 0 }
    const start = x + (gap.from - time) * perMs
    corners.push({ time: gap.from, x: start }, { time: gap.to, x: start + width })
  }
  corners.push({ time: to, x: 1 })
  return {
    from,
    to,
    gaps,
    x: (time) => between(corners, ({ time: at }) => at, ({ x }) => x, time),
    timeAt: (x) => between(corners, ({ x: at }) => at, ({ time }) => time, x),
  }
}

function gapsOf(times: readonly number[]): Gap[] {
  const distances = times.slice(1).map((time, index) => time - (times[index] ?? time))
  const positive = distances.filter((distance) => distance > 0).toSorted((one, other) => one - other)
  const median = positive[Math.floor((positive.length - 1) / 2)] ?? 0
  // Two events have one distance, which is no gap between others.
  if (positive.length < 3) return []
  const least = Math.max(leastGapMs, collapsedFrom * median)
  return distances.flatMap((distance, index) => (distance > least ? [{ from: times[index] ?? 0, to: times[index + 1] ?? 0 }] : []))
}

type Corner = { time: number; x: number }

function between(corners: readonly Corner[], key: (corner: Corner) => number, value: (corner: Corner) => number, at: number): number {
  const next = corners.findIndex((corner) => key(corner) >= at)
  const after = corners[next === -1 ? corners.length - 1 : next]
  const before = corners[next === -1 ? corners.length - 1 : Math.max(0, next - 1)]
  if (!before || !after) return 0
  const distance = key(after) - key(before)
  return distance === 0 ? value(after) : value(before) + ((at - key(before)) / distance) * (value(after) - value(before))
}
