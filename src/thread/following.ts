import { HeedError, isHeedError } from '../errors.ts'
import type { Chunk } from '../run/chunk.ts'
import { untilAborted } from '../run/until-aborted.ts'
import type { RunRow, Scope, ThreadStore } from '../store/contract.ts'
import type { ThreadRuntime } from './runtime.ts'
import { abortThread } from './watching.ts'

/** How often a run is looked after that another process may have, or nobody. */
const lookMs = 1_000

/** Follows one run, wherever it is: what it says while it is at work here, and how it stands when it is over or waits. */
export class RunFollower {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  #heard: Promise<boolean>
  #unfollow: () => void = () => {}
  #over = false

  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, emit: (chunk: Chunk) => void) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#emit = emit
    this.#heard = this.#listen()
  }

  /** The run, started by `signalId`, once it is no longer running. Rejects with the signal's reason when that aborts first; the run goes on then. */
  async end(signalId: string, signal: AbortSignal): Promise<RunRow> {
    for (;;) {
      const run = await this.#look(signalId)
      if (run) return run
      const pause = Promise.withResolvers<boolean>()
      const timer = this.#runtime.clock.after(lookMs, () => pause.resolve(false), { background: true })
      try {
        const heard = await untilAborted(Promise.race([this.#heard, pause.promise]), signal)
        if (heard) this.#heard = this.#listen()
        else if (!this.#runtime.hostOf(this.#scope.threadId)) await this.#runtime.wake(this.#scope.threadId)
      } finally {
        timer.cancel()
      }
    }
  }

  /** Ends the run too: what waits to start it is taken out, what is at work or suspended is aborted. */
  async abort(signalId: string): Promise<void> {
    const cancelled = await this.#runtime.store.cancelSignals(this.#scope, [signalId])
    if (cancelled.length === 0) abortThread(this.#runtime, this.#scope, { expectedRunId: this.#runId })
  }

  /** Hears nothing any more. */
  close(): void {
    this.#over = true
    this.#unfollow()
  }

  /** True when a segment of the run is over here. Rejects when this process is closed. */
  #listen(): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    promise.catch(() => {})
    this.#unfollow = this.#runtime.expectations.follow(this.#runId, {
      emit: (chunk) => {
        if (!this.#over) this.#emit(chunk)
      },
      resolve: () => resolve(true),
      // A run that could not be stored is taken up again, and one that was fenced goes on elsewhere: the store says how it ends.
      reject: (error) => (isHeedError(error) && error.code === 'closed' ? reject(error) : resolve(true)),
    })
    this.#runtime.hostOf(this.#scope.threadId)?.join(this.#runId)
    return promise
  }

  async #look(signalId: string): Promise<RunRow | undefined> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (run) return run.status === 'running' ? undefined : run
    const mail = await this.#runtime.store.getSignal(this.#scope, signalId)
    if (mail?.state === 'pending' || mail?.state === 'taken') return undefined
    throw new HeedError('aborted', `Run ${this.#runId} was taken out of the queue before it began.`, { details: { runId: this.#runId } })
  }
}

/** How many rows are read at once. */
const page = 100

/** What a run answered: the text of its last step, with those before it whose stream broke. */
export async function answerOf(store: ThreadStore, scope: Scope, runId: string): Promise<string> {
  let text: string | undefined
  for (let before: number | undefined, more = true; more;) {
    const found = await store.listRows(scope, { limit: page, ...(before === undefined ? {} : { before }) })
    for (const row of found.rows.toReversed()) {
      if (row.runId !== runId || row.role !== 'assistant') continue
      if (text !== undefined && row.content.metadata?.incomplete !== 'broken') return text
      text = row.content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('') + (text ?? '')
    }
    before = found.rows[0]?.seq
    more = found.more && before !== undefined
  }
  return text ?? ''
}
