import { describe } from '../../base/errors.ts'
import type { Chunk } from '../../run/chunk.ts'
import type { RunRow, Scope } from '../../store/contract/threads.ts'
import { compareCursors, parseCursor } from '../watch/cursor.ts'
import { boundaries, ends } from '../watch/present-step.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import type { AgentThreadSubscription } from '../watch/subscription.ts'
import { subscribe } from '../watch/watching.ts'

/**
 * Hears what one run says, in whichever process it is at work, by watching its thread. Each chunk is heard once. Where the run was taken up
 * again, or something was missed, a `data-run-resumed` chunk says from which step on it is told anew.
 */
export class RunEar {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  /** The cursor of the last chunk that was heard, here or before. */
  #last: string | undefined
  #subscription: AgentThreadSubscription | undefined
  #closed = false
  #ended = false
  /** The calls that the run said it waits for. */
  readonly #waits = new Set<string>()
  #word = Promise.withResolvers<void>()

  /** `last`: the cursor of what was heard otherwise before. */
  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, last: string | undefined, emit: (chunk: Chunk) => void) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#last = last
    this.#emit = emit
    this.#listen().catch((error: unknown) => {
      if (!this.#closed && !runtime.closing) runtime.logger.warn('what a run says in another process can not be heard', { threadId: scope.threadId, runId, error: describe(error) })
    })
  }

  /** Resolves when the run next says that it is over, or that it waits. */
  word(): Promise<void> {
    return this.#word.promise
  }

  /** Whether everything was heard that the run said before it was stored as this. */
  heardOut({ status, suspended }: RunRow): boolean {
    return this.#ended || (status === 'suspended' && suspended.every((call) => call.decision || this.#waits.has(call.toolCallId)))
  }

  close(): void {
    this.#closed = true
    this.#subscription?.unsubscribe()
  }

  async #listen(): Promise<void> {
    const subscription = await subscribe(this.#runtime, this.#scope)
    this.#subscription = subscription
    if (this.#closed) return subscription.unsubscribe()
    for await (const chunk of subscription.stream) {
      if (this.#closed) return
      if (chunk.type === 'data-thread-snapshot') await this.#startOver(chunk)
      else if (chunk.runId === this.#runId) this.#hear(chunk)
    }
  }

  #hear(chunk: Chunk): void {
    const { cursor } = chunk
    if (cursor !== undefined) {
      if (this.#last !== undefined && compareCursors(parseCursor(cursor), parseCursor(this.#last)) <= 0) return
      this.#last = cursor
    }
    this.#emit(chunk)
    if (!boundaries.has(chunk.type) || chunk.type === 'step-finish') return
    if (ends.has(chunk.type)) this.#ended = true
    else if (chunk.type === 'tool-call-approval' || chunk.type === 'tool-call-suspended') this.#waits.add(chunk.payload.toolCallId)
    this.#word.resolve()
    this.#word = Promise.withResolvers()
  }

  /** What is told from here on follows what is stored. */
  async #startOver({ cursor }: Chunk): Promise<void> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (this.#closed || run?.status !== 'running') return
    this.#last = cursor
    this.#emit({ type: 'data-run-resumed', runId: this.#runId, data: { step: run.step } })
  }
}
