/**
 * Files that load each other, as paths that end where they began; each such file is in at least one. `loads` maps a file to what
 * it loads.
 */
export function cycles(loads: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = []
  const done = new Set<string>()
  for (const start of loads.keys()) {
    if (done.has(start)) continue
    const path = wayBack(start, loads)
    if (path) {
      found.push(path)
      for (const file of path) done.add(file)
    }
  }
  return found
}

/** The shortest way from `start` back to itself. */
function wayBack(start: string, loads: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = [start]
  for (const file of queue) {
    for (const next of loads.get(file) ?? []) {
      if (next === start) return [...trail(file, cameFrom), start]
      if (cameFrom.has(next)) continue
      cameFrom.set(next, file)
      queue.push(next)
    }
  }
  return undefined
}

function trail(file: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const before = cameFrom.get(file)
  return before === undefined ? [file] : [...trail(before, cameFrom), file]
}
