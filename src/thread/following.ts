import { HeedError, isHeedError } from '../errors.ts'
import type { Chunk } from '../run/chunk.ts'
import { untilAborted } from '../run/until-aborted.ts'
import type { RunResult } from '../run/run-result.ts'
import type { RunRow, Scope } from '../store/contract.ts'
import { activeContext } from '../tracing/telemetry.ts'
import type { LocalCall } from './local-call.ts'
import type { ThreadRuntime } from './runtime.ts'
import { storedResult } from './stored-result.ts'
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
  /** Of the last segment that ended here. */
  result: RunResult | undefined

  constructor(runtime: ThreadRuntime, scope: Scope, runId: string, emit: (chunk: Chunk) => void) {
    this.#runtime = runtime
    this.#scope = scope
    this.#runId = runId
    this.#emit = emit
    this.#heard = this.#listen()
  }

  /**
   * The run once it is no longer running; `signalId` is what starts it, where it may not have begun. Rejects with the signal's reason
   * when that aborts first; the run goes on then.
   */
  async end(signalId: string | undefined, signal: AbortSignal): Promise<RunRow> {
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
      from: activeContext(),
      emit: (chunk) => {
        if (!this.#over) this.#emit(chunk)
      },
      resolve: (result) => {
        this.result = result
        resolve(true)
      },
      // A run that could not be stored is taken up again, and one that was fenced goes on elsewhere: the store says how it ends.
      reject: (error) => (isHeedError(error) && error.code === 'closed' ? reject(error) : resolve(true)),
    })
    this.#runtime.hostOf(this.#scope.threadId)?.join(this.#runId)
    return promise
  }

  async #look(signalId: string | undefined): Promise<RunRow | undefined> {
    const run = await this.#runtime.store.getRun(this.#scope, this.#runId)
    if (run) return run.status === 'running' ? undefined : run
    const mail = signalId === undefined ? null : await this.#runtime.store.getSignal(this.#scope, signalId)
    if (mail?.state === 'pending' || mail?.state === 'taken') return undefined
    throw new HeedError('aborted', `Run ${this.#runId} is gone: it was taken out of the queue, or deleted with its thread.`, { details: { runId: this.#runId } })
  }
}

/**
 * Lets the caller of a run that broke off follow it to its end. What the run had not stored is said again: a chunk tells from where.
 */
export function followOn(runtime: ThreadRuntime, run: { threadId: string; runId: string; step: number }, caller: LocalCall): void {
  const { threadId, runId, step } = run
  caller.emit({ type: 'data-run-resumed', runId, data: { step } })
  const follower = new RunFollower(runtime, { threadId }, runId, (chunk) => caller.emit(chunk))
  follower.end(undefined, unaborted)
    .then((over) => follower.result ?? (caller.options?.structuredOutput ? Promise.reject(objectLost(over)) : storedResult(runtime.store, over)))
    .then((result) => caller.resolve(result), (error: unknown) => caller.reject(error))
    .finally(() => follower.close())
}

function objectLost({ runId, status }: RunRow): HeedError {
  return new HeedError('store_failed', `Run ${runId} is ${status}, but the store did not answer when it ended, and the object it made is gone. Its text is on the thread.`, {
    details: { runId, status },
  })
}

const unaborted = new AbortController().signal
