import type { Timer } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
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
