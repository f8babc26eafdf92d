import type { Timer } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { FormerLease } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from './runtime.ts'

/** Repeats the sweep for threads that need a runner, until its runtime closes. */
export class Sweeper {
  readonly #runtime: ThreadRuntime
  readonly #onSweep: () => void
  /** How many threads a sweep claims at most; after a full page there may be more. */
  readonly #page: number
  #timer: Timer | undefined

  /** `onSweep` is called with every sweep. */
  constructor(runtime: ThreadRuntime, page: number, onSweep: () => void) {
    this.#runtime = runtime
    this.#page = page
    this.#onSweep = onSweep
  }

  /** The first sweep is immediate: an earlier process may have left threads without a runner. */
  start(delay = 0): void {
    const runtime = this.#runtime
    if (runtime.closing) return
    this.#timer = runtime.clock.after(delay, () => {
      const later = () => runtime.sweepMs * (0.75 + Math.random() / 2)
      this.#onSweep()
      runtime.sweep().finally(() => runtime.peers.tick()).then(
        (taken) => this.start(taken === this.#page ? 0 : later()),
        (error: unknown) => {
          if (!runtime.isClosedBy(error)) runtime.logger.error('the sweep for threads without a runner failed', { error: String(error) })
          this.start(later())
        },
      )
    }, { background: true })
  }

  stop(): void {
    this.#timer?.cancel()
  }
}

/** The delay before a thread is claimed again after its host failed. It doubles with each failure in a row, up to the longest. */
const retryMs = 1_000
const longestRetryMs = 60_000

/** The threads that are claimed again later, since their host or their claim failed. */
export class LaterClaims {
  readonly #runtime: ThreadRuntime
  readonly #claim: (threadId: string, again: FormerLease | undefined) => Promise<void>
  readonly #waiting = new Map<string, { timer: Timer; again: FormerLease | undefined }>()
  /** Until a host ends without a failure. */
  readonly #failures = new Map<string, { count: number; last: unknown }>()

  /** `claim` must not reject. */
  constructor(runtime: ThreadRuntime, claim: (threadId: string, again: FormerLease | undefined) => Promise<void>) {
    this.#runtime = runtime
    this.#claim = claim
  }

  has(threadId: string): boolean {
    return this.#waiting.has(threadId)
  }

  lastFailure(threadId: string): unknown {
    return this.#failures.get(threadId)?.last
  }

  /** `lease`: that of the host that failed. Without it, the thread's lease may be this process's. */
  add(threadId: string, cause: unknown, lease?: FormerLease): void {
    const { clock, draining, lease: processLease } = this.#runtime
    if (draining) return
    const again = lease && { ...lease, excused: lease.excused === true || isStoreFailure(cause) }
    const before = this.#failures.get(threadId)?.count ?? 0
    const waiting = this.#waiting.get(threadId)
    // While the store is known to have failed, nothing is tried.
    const count = waiting || processLease.failure ? Math.max(1, before) : before + 1
    this.#failures.set(threadId, { count, last: cause })
    if (waiting) {
      // A later host of the thread failed, which a sweep had started: the store gives only its newest lease again.
      if (again && again.epoch >= (waiting.again?.epoch ?? 0)) waiting.again = again
      return
    }
    // Not a background timer: callers may wait for the run.
    const timer = clock.after(Math.min(longestRetryMs, retryMs * 2 ** (count - 1)), () => {
      this.#waiting.delete(threadId)
      void this.#claim(threadId, entry.again)
    })
    const entry = { timer, again }
    this.#waiting.set(threadId, entry)
  }

  /** Later failures are the first ones of a row. */
  succeed(threadId: string): void {
    this.#failures.delete(threadId)
  }

  stop(): void {
    for (const { timer } of this.#waiting.values()) timer.cancel()
  }
}

/** The run was stopped by its storage: its next attempt may succeed as it is. */
function isStoreFailure(error: unknown): boolean {
  return isHeedError(error) && (error.code.startsWith('store_') || (error.code === 'fenced' && error.retryable))
}

/** Whether the store was closed: every further call of it fails. */
export function isClosed(error: unknown): boolean {
  return isHeedError(error) && error.code === 'closed'
}

/** How many threads without a runner are read. */
const orphanPage = 1_000

/**
 * Rejects callers that wait behind an abandoned run: its process is gone, and its agent is not registered here. Another process that has
 * the agent may be about to resume it, so a run counts as abandoned when two consecutive checks find it so.
 */
export class AbandonedRuns {
  readonly #runtime: ThreadRuntime
  #suspects: ReadonlySet<string> = new Set()

  constructor(runtime: ThreadRuntime) {
    this.#runtime = runtime
  }

  async check(): Promise<void> {
    const { store, waiters, lease } = this.#runtime
    const waiting = waiters.threadsAwaitedRemotely().filter((threadId) => waiters.acceptedOn(threadId).calls.length > 0)
    if (waiting.length === 0) {
      this.#suspects = new Set()
      return
    }
    const orphans = new Set((await store.listOrphans(lease.storeTime, orphanPage)).map(({ threadId }) => threadId))
    const suspects = new Set<string>()
    for (const threadId of waiting) {
      const thread = orphans.has(threadId) ? await store.getThread({ threadId }) : null
      if (thread?.status !== 'running' || thread.agentId === undefined || this.#runtime.hasAgent(thread.agentId)) continue
      if (this.#suspects.has(threadId)) await this.#rejectCallers(threadId, thread.agentId, thread.runId)
      else suspects.add(threadId)
    }
    this.#suspects = suspects
  }

  async #rejectCallers(threadId: string, agentId: string, runId: string | undefined): Promise<void> {
    const { store, waiters } = this.#runtime
    for (const id of await store.cancelSignals({ threadId }, waiters.acceptedOn(threadId).calls)) {
      waiters.takeCall(threadId, id)?.reject(abandoned(threadId, agentId, runId))
    }
  }
}

function abandoned(threadId: string, agentId: string, runId: string | undefined): HeedError {
  return new HeedError(
    'run_abandoned',
    `Thread ${threadId} has an unfinished run of agent '${agentId}', which no process runs. ` +
      'Start one that has this agent, or end the run: agent.abortRun({ threadId }).',
    { retryable: true, details: { threadId, agentId, ...(runId === undefined ? {} : { runId }) } },
  )
}
