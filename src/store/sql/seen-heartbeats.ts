import { RecentMap } from '../../base/recent-map.ts'

/** How many processes are remembered. One that was forgotten is watched anew, which delays a takeover and allows none. */
const mostProcesses = 10_000

/** By how much the clock of the server may differ from where this process expects it. An answer may come late, so it is no small time. */
const steadyMs = 2_000

/** A heartbeat as it was read: when it expires, the time between the heartbeat and that, and the time of the server. */
interface ReadHeartbeat {
  until: number
  length: number
  now: number
}

/**
 * What this process knows about the heartbeats of others by its own clock, which never jumps. The clock of a server may: leases then seem
 * to have expired although their owners write heartbeats. So a lease is taken only from a process that is known to have been silent.
 */
export class SeenHeartbeats {
  readonly #seen = new RecentMap<{ until: number; since: number }>(mostProcesses)
  /** The time of the server less that of this process, and since when it is so, in the time of the server. */
  #steady = { offset: NaN, since: Infinity }

  /**
   * For how many milliseconds the process is known to have written no later heartbeat: since this process saw the heartbeat first, or since
   * it was written, where this process knows that the clock of the server did not jump since then.
   */
  silentFor(owner: string, { until, length, now }: ReadHeartbeat): number {
    const here = performance.now()
    if (!(Math.abs(now - here - this.#steady.offset) <= steadyMs)) this.#steady = { offset: now - here, since: now }
    const seen = this.#seen.get(owner)
    if (seen?.until !== until) this.#seen.set(owner, { until, since: here })
    const seenFor = seen?.until === until ? here - seen.since : 0
    const written = until - length
    return written >= this.#steady.since && written <= now ? Math.max(seenFor, now - written) : seenFor
  }
}
