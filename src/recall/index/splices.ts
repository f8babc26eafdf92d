/** At a place of a list, so many went and so many came. */
export interface Splice {
  at: number
  removed: number
  added: number
}

export interface Move {
  from: number
  to: number
  length: number
}

/** How what stays moves, in an order in which nothing is overwritten before it has moved. `splices` are in the order of their places. */
export function movesOf(splices: readonly Splice[], count: number): Move[] {
  const kept: Move[] = []
  let from = 0
  let shift = 0
  for (const { at, removed, added } of [...splices, { at: count, removed: 0, added: 0 }]) {
    if (at > from) kept.push({ from, to: from + shift, length: at - from })
    from = at + removed
    shift += added - removed
  }
  return [...kept.filter(({ to, from: was }) => to < was), ...kept.filter(({ to, from: was }) => to > was).toReversed()]
}

/** Does so in a list that is long enough, of which each entry has `stride` numbers. */
export function move(list: Float64Array | Float32Array | Int32Array | Uint16Array | Uint8Array | Int8Array, moves: readonly Move[], stride = 1): void {
  for (const { from, to, length } of moves) list.copyWithin(to * stride, from * stride, (from + length) * stride)
}
