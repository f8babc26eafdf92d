import { describe } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { RunRow, Scope } from '../../store/contract/threads.ts'
import { compareCursors, parseCursor } from '../watch/ring.ts'
import { boundaries, ends } from '../watch/present-step.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import type { AgentThreadSubscription } from '../watch/subscription.ts'
import { subscribe } from '../watch/watching.ts'

/**
 * Follows the chunks of one run, in whichever process it runs, by a subscription to its thread. Each chunk is emitted once. Where the run
 * was resumed, or chunks were missed, a `data-run-resumed` chunk names the step from which they are emitted again.
 */
export class RemoteRun {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  /** The cursor of the last chunk that was emitted, here or before. */
  #last: string | undefined
  #subscription: AgentThreadSubscription | undefined
  #closed = false
  #ended = false
  /** The tool calls that the run waits for, by its chunks. */
  readonly #waits = new Set<string>()
  #word = Promise.withResolvers<void>()

  /** `last`: the cursor of the last chunk that the caller has already. */
  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, last: string | undefined, emit: (chunk: Chunk) => void) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#last = last
    this.#emit = emit
    this.#follow().catch((error: unknown) => {
      if (this.#closed || runtime.closing) return
      const details = { threadId: scope.threadId, runId, error: describe(error) }
      runtime.logger.warn('the chunks of a run in another process can not be followed', details)
    })
  }

  /** Resolves at the next chunk that ends or suspends the run. */
  word(): Promise<void> {
    return this.#word.promise
  }

  /** Whether every chunk was emitted that the run published before it was stored as this. */
  heardOut({ status, suspended }: RunRow): boolean {
    return this.#ended || (status === 'suspended' && suspended.every((call) => call.decision || this.#waits.has(call.toolCallId)))
  }

  close(): void {
    this.#closed = true
    this.#subscription?.unsubscribe()
  }

  async #follow(): Promise<void> {
    const subscription = await subscribe(this.#runtime, this.#scope)
    this.#subscription = subscription
    if (this.#closed) return subscription.unsubscribe()
    for await (const chunk of subscription.stream) {
      if (this.#closed) return
      if (chunk.type === 'data-thread-snapshot') await this.#startOver(chunk)
      else if (chunk.runId === this.#runId) this.#receive(chunk)
    }
  }

  #receive(chunk: Chunk): void {
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

  /** The chunks from here on follow what is stored. */
  async #startOver({ cursor }: Chunk): Promise<void> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (this.#closed || run?.status !== 'running') return
    this.#last = cursor
    this.#emit({ type: 'data-run-resumed', runId: this.#runId, data: { step: run.step } })
  }
}
