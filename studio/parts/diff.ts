/** A piece of a text that both have, or one of them. */
export interface Piece {
  kind: 'same' | 'removed' | 'added'
  text: string
}

/** Above this product of their lengths two lists are not compared piece by piece: the table of a comparison would be too large. */
const maxTable = 4_000_000

/** What differs between two lists: the longest list that both have in this order, and the rest of each. */
function piecesOf(before: readonly string[], after: readonly string[]): Piece[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  while (tail < Math.min(before.length, after.length) - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const same = (text: string): Piece => ({ kind: 'same', text })
  return [
    ...before.slice(0, head).map(same),
    ...between(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ]
}

function between(before: readonly string[], after: readonly string[]): Piece[] {
  const removed = (text: string): Piece => ({ kind: 'removed', text })
  const added = (text: string): Piece => ({ kind: 'added', text })
  if (before.length * after.length > maxTable) return [...before.map(removed), ...after.map(added)]
  // At [i][j]: how many pieces the rests from i and j have in common.
  const width = after.length + 1
  const common = new Uint32Array((before.length + 1) * width)
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const skipped = Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0)
      common[i * width + j] = before[i] === after[j] ? (common[(i + 1) * width + j + 1] ?? 0) + 1 : skipped
    }
  }
  const pieces: Piece[] = []
  let i = 0
  let j = 0
  while (i < before.length || j < after.length) {
    const [one, other] = [before[i], after[j]]
    if (one !== undefined && one === other) {
      pieces.push({ kind: 'same', text: one })
      i++
      j++
    } else if (one !== undefined && (other === undefined || (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))) {
      pieces.push(removed(one))
      i++
    } else if (other !== undefined) {
      pieces.push(added(other))
      j++
    }
  }
  return pieces
}

/** What differs between two texts, line by line. A line ends before its line break. */
export function lineDiff(before: string, after: string): Piece[] {
  return piecesOf(before.split('\n'), after.split('\n'))
}

/** What differs between two lines, word by word; neighbors of one kind are one piece. */
export function wordDiff(before: string, after: string): Piece[] {
  const words = (text: string) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []
  const joined: Piece[] = []
  for (const piece of piecesOf(words(before), words(after))) {
    const last = joined.at(-1)
    if (last?.kind === piece.kind) last.text += piece.text
    else joined.push({ ...piece })
  }
  return joined
}
