/** The candidate that a typing error or a shortened name most likely meant, if one is near. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const whole = word.length < 3 ? undefined : candidates.find((candidate) => candidate.startsWith(`${word}-`))
  if (whole !== undefined) return whole
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(word, candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(Math.min(word.length, candidate.length) / 2)) && distance <= 3)
  return ranked.toSorted((a, b) => a.distance - b.distance)[0]?.candidate
}

/** How many letters to insert, delete, replace or swap with their neighbor. */
function distanceOf(from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let least = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (last[column - 1] ?? 0) + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
      if (swapped) least = Math.min(least, (before[column - 2] ?? 0) + 1)
      current.push(least)
    }
    before = last
    last = current
  }
  return last[to.length] ?? 0
}
