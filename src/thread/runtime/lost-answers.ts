import { isHeedError } from '../../base/errors.ts'
import type { ThreadRuntime } from './runtime.ts'
import type { LaterClaims } from './sweeper.ts'

/**
 * Calls of the store that may give this process the lease of a thread. Where the answer of one is lost, the lease may be this process's
 * although no host here knows: the last call on the thread looks.
 */
export class LostAnswers {
  readonly #runtime: ThreadRuntime
  readonly #laterClaims: LaterClaims
  readonly #adopt: (threadId: string) => Promise<void>
  /** Calls under way; `lost`: an answer to one of them was lost. */
  readonly #asks = new Map<string, { count: number; lost: boolean }>()

  /** `adopt` runs the thread if its lease names this process. */
  constructor(runtime: ThreadRuntime, laterClaims: LaterClaims, adopt: (threadId: string) => Promise<void>) {
    this.#runtime = runtime
    this.#laterClaims = laterClaims
    this.#adopt = adopt
  }

  /** Repeats the call once, which is safe since all ids are stable. */
  async retryOnce<T>(threadId: string, ask: () => Promise<T>): Promise<T> {
    const asks = this.#asks.get(threadId) ?? { count: 0, lost: false }
    this.#asks.set(threadId, asks)
    asks.count++
    try {
      return await ask().catch((error: unknown) => {
        this.#runtime.lease.fail(error)
        if (isHeedError(error) && !error.retryable) throw error
        asks.lost = true
        return ask().catch((second: unknown) => {
          // What the first call did is still not known.
          throw isHeedError(error) && error.code === 'store_unknown' ? error : second
        })
      })
    } finally {
      // The last call looks after the thread: an answer that is still under way may bring the lease.
      if (--asks.count === 0) {
        this.#asks.delete(threadId)
        if (asks.lost) await this.#adopt(threadId).catch((error: unknown) => this.#laterClaims.add(threadId, error))
      }
    }
  }

  /** Leaves the thread to a call that is under way, if there is one. */
  leaveToCall(threadId: string): boolean {
    const asks = this.#asks.get(threadId)
    if (asks) asks.lost = true
    return asks !== undefined
  }
}
