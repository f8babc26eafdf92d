import { RecentMap } from '../../base/recent-map.ts'

/** How many processes are remembered. One that was forgotten is watched anew, which delays a takeover and allows none. */
const mostProcesses = 10_000

/**
 * Since when this process has seen the last heartbeat of each other process, by its own clock, which never jumps. The clock of a server may
 * jump: leases then seem to have expired although their owners write heartbeats. So a lease is taken only from a process whose heartbeat
 * has also stood still before the eyes of the process that takes it.
 */
export class SeenHeartbeats {
  readonly #seen = new RecentMap<{ until: number; since: number }>(mostProcesses)

  /** For how many milliseconds this process has seen the heartbeat that expires then, and no later one: 0 at the first time. */
  seenFor(owner: string, until: number): number {
    const now = performance.now()
    const seen = this.#seen.get(owner)
    if (seen?.until === until) return now - seen.since
    this.#seen.set(owner, { until, since: now })
    return 0
  }
}
