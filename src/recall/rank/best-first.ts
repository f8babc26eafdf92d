/** The number of candidates that are selected at first, and how many times as many each time the caller reads on. */
const selectedFirst = 64
const growth = 8

/**
 * The candidates, best first; among equals, the one with the lower number. Callers read few of many: those are selected in one pass over
 * the candidates, and another pass selects more only where the caller reads on.
 */
export function* bestFirst(candidates: Int32Array, scores: Float64Array): Generator<number, void, undefined> {
  let last: number | undefined
  for (let size = selectedFirst, read = 0; read < candidates.length; size *= growth) {
    const selected = selectBest(candidates, scores, size, last)
    yield* selected
    read += selected.length
    last = selected.at(-1)
  }
}

/** The best `size` of the candidates that come after `last`, in order. */
function selectBest(candidates: Int32Array, scores: Float64Array, size: number, last: number | undefined): Int32Array {
  const heap = new Int32Array(Math.min(size, candidates.length))
  let count = 0
  let worst = Number.NEGATIVE_INFINITY
  for (let n = 0; n < candidates.length; n += 1) {
    const one = candidates[n] as number
    // Nearly all candidates end here.
    if ((scores[one] as number) < worst) continue
    if (last !== undefined && !isBetter(scores, last, one)) continue
    if (count < heap.length) {
      heap[count] = one
      count += 1
      if (count < heap.length) continue
      for (let node = (count >> 1) - 1; node >= 0; node -= 1) sink(heap, scores, node)
      worst = scores[heap[0] as number] as number
    } else if (isBetter(scores, one, heap[0] as number)) {
      heap[0] = one
      sink(heap, scores, 0)
      worst = scores[heap[0]] as number
    }
  }
  return heap.subarray(0, count).sort((a, b) => (isBetter(scores, a, b) ? -1 : 1))
}

function isBetter(scores: Float64Array, a: number, b: number): boolean {
  const difference = (scores[a] as number) - (scores[b] as number)
  return difference > 0 || (difference === 0 && a < b)
}

/** Moves an item down in a heap whose first item is the worst. */
function sink(heap: Int32Array, scores: Float64Array, from: number): void {
  for (let node = from; ;) {
    const left = 2 * node + 1
    let worst = node
    if (left < heap.length && isBetter(scores, heap[worst] as number, heap[left] as number)) worst = left
    if (left + 1 < heap.length && isBetter(scores, heap[worst] as number, heap[left + 1] as number)) worst = left + 1
    if (worst === node) return
    const moved = heap[node] as number
    heap[node] = heap[worst] as number
    heap[worst] = moved
    node = worst
  }
}

/** The values between -1 and 1 have so many, and those that rounding puts outside have some more. */
const bins = 4_096
const spareBins = 64

/** The numbers of the `size` highest values between -1 and 1, in no order: one pass counts them by height, another takes them. */
export function highest(values: Float32Array, size: number): Int32Array {
  const counts = new Int32Array(bins + 2 * spareBins)
  const [factor, zero] = [bins / 2, bins / 2 + spareBins]
  for (let at = 0; at < values.length; at += 1) (counts[((values[at] as number) * factor + zero) | 0] as number) += 1
  let bin = counts.length - 1
  let above = 0
  for (; bin > 0 && above + (counts[bin] as number) < size; bin -= 1) above += counts[bin] as number
  const taken = new Int32Array(Math.min(size, values.length))
  let [count, ofBin] = [0, taken.length - above]
  for (let at = 0; at < values.length && count < taken.length; at += 1) {
    const place = ((values[at] as number) * factor + zero) | 0
    if (place < bin || (place === bin && ofBin === 0)) continue
    if (place === bin) ofBin -= 1
    taken[count] = at
    count += 1
  }
  return taken.subarray(0, count)
}
