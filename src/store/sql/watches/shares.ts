import { longestWaiting } from '../notifications/dispatch.ts'

/** A claim of what is due of several agents or channels. */
interface SharedClaim {
  now: number
  limit: number
  /** At most so many of one. Those without an entry have no limit of their own. */
  most?: Readonly<Record<string, number>> | undefined
}

/**
 * Claims what is due: each agent or channel first gets an equal share of the limit, the rest goes to those with more. So none waits for one
 * that is flooded. `take` claims up to `limit` of one and returns them.
 */
export function claimInShares<Claimed>(
  ids: readonly string[], { now, limit, most = {} }: SharedClaim, nextDueOf: (id: string) => number | undefined,
  take: (id: string, limit: number) => readonly Claimed[],
): Claimed[] {
  const mostOf = (id: string) => (Object.hasOwn(most, id) ? (most[id] ?? limit) : limit)
  const waiting = longestWaiting(ids.filter((id) => mostOf(id) > 0), now, nextDueOf)
  const share = Math.max(1, Math.ceil(limit / Math.max(1, waiting.length)))
  const claimed: Claimed[] = []
  const counts = new Map<string, number>()
  for (const round of [share, limit]) {
    for (const id of waiting) {
      const had = counts.get(id) ?? 0
      const free = Math.min(round, limit - claimed.length, mostOf(id) - had)
      if (free <= 0) continue
      const taken = take(id, free)
      // One that has no more is not asked again.
      counts.set(id, taken.length < free ? Infinity : had + taken.length)
      claimed.push(...taken)
    }
  }
  return claimed
}
