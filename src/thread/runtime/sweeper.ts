import type { Timer } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { ThreadRuntime } from './runtime.ts'

/** Looks again and again for what nobody runs. It ends with its runtime, and so does its timer. */
export class Sweeper {
  readonly #runtime: ThreadRuntime
  readonly #look: () => void
  /** How many a sweep takes up at most; when it did, there may be more. */
  readonly #page: number
  #timer: Timer | undefined

  /** `look` is what else is to be looked for. */
  constructor(runtime: ThreadRuntime, page: number, look: () => void) {
    this.#runtime = runtime
    this.#page = page
    this.#look = look
  }

  /** The first look comes at once: an earlier process may have left something. */
  start(delay = 0): void {
    const runtime = this.#runtime
    if (runtime.closing) return
    this.#timer = runtime.clock.after(delay, () => {
      const later = () => runtime.sweepMs * (0.75 + Math.random() / 2)
      this.#look()
      runtime.sweep().finally(() => runtime.peers.tick()).then(
        (taken) => this.start(taken === this.#page ? 0 : later()),
        (error: unknown) => {
          if (!runtime.endedBy(error)) runtime.logger.error('looking for orphaned threads failed', { error: String(error) })
          this.start(later())
        },
      )
    }, { background: true })
  }

  end(): void {
    this.#timer?.cancel()
  }
}

/** Whoever has the store closed it: whatever is asked of it will fail. */
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

  async look(): Promise<void> {
    const { store, waiters, clock } = this.#runtime
    const waiting = waiters.threadsElsewhere().filter((threadId) => waiters.waitingOn(threadId).calls.length > 0)
    if (waiting.length === 0) {
      this.#suspects = new Set()
      return
    }
    const orphans = new Set((await store.listOrphans(clock.now(), orphanPage)).map(({ threadId }) => threadId))
    const suspects = new Set<string>()
    for (const threadId of waiting) {
      const thread = orphans.has(threadId) ? await store.getThread({ threadId }) : null
      if (thread?.status !== 'running' || thread.agentId === undefined || this.#runtime.knows(thread.agentId)) continue
      if (this.#suspects.has(threadId)) await this.#release(threadId, thread.agentId, thread.runId)
      else suspects.add(threadId)
    }
    this.#suspects = suspects
  }

  async #release(threadId: string, agentId: string, runId: string | undefined): Promise<void> {
    const { store, waiters } = this.#runtime
    for (const id of await store.cancelSignals({ threadId }, waiters.waitingOn(threadId).calls)) {
      waiters.takeCall(threadId, id)?.reject(abandoned(threadId, agentId, runId))
    }
  }
}

function abandoned(threadId: string, agentId: string, runId: string | undefined): HeedError {
  return new HeedError(
    'run_abandoned',
    `Thread ${threadId} has an unfinished run of agent '${agentId}', which no process runs. Start one that has this agent, or end the run: agent.abortRun({ threadId }).`,
    { retryable: true, details: { threadId, agentId, ...(runId === undefined ? {} : { runId }) } },
  )
}
