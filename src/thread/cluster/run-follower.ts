import { HeedError, isHeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import { untilAborted } from '../../base/until-aborted.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { RunRow, Scope } from '../../store/contract/threads.ts'
import { activeContext } from '../../tracing/telemetry.ts'
import type { LocalCall } from '../send/waiters.ts'
import { RemoteRun } from './remote-run.ts'
import { unlessNew } from '../watch/new-thread.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { storedResult } from '../send/stored-result.ts'
import { abortThread } from '../watch/watching.ts'

/** How often a run is looked after that another process may have, or nobody. */
const lookMs = 1_000

/** Follows one run, wherever it is: what it says while it is at work, here or in another process, and how it stands when it is over or waits. */
export class RunFollower {
  readonly #runtime: ThreadRuntime
  readonly #scope: Scope
  readonly #runId: string
  readonly #emit: (chunk: Chunk) => void
  #heard: Promise<boolean>
  #unfollow: () => void = () => {}
  #over = false
  /** From when the run was first found at work elsewhere: what is said here too is then heard by it, in one order. */
  #ear: RemoteRun | undefined
  /** The cursor of the last chunk that was heard without it. */
  #last: string | undefined
  /** What broke off here is followed by somebody else, who tells it here. */
  #carried = false
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
      if (run) return await this.#hearOut(run, signal)
      if (!this.#ear && !this.#carried && (await this.#isElsewhere())) {
        this.#ear = new RemoteRun(this.#runtime, this.#scope, this.#runId, this.#last, (chunk) => this.#emit(chunk))
      }
      const heard = await this.#pause([this.#heard, ...this.#words()], signal)
      if (heard) this.#heard = this.#listen()
      else if (heard === undefined && !this.#runtime.hostOf(this.#scope.threadId)) await this.#runtime.wake(this.#scope.threadId)
    }
  }

  async #isElsewhere(): Promise<boolean> {
    if (this.#runtime.hostOf(this.#scope.threadId)) return false
    const thread = await this.#runtime.store.getThread(this.#scope)
    return thread?.status === 'running' && thread.owner !== undefined && thread.owner !== this.#runtime.owner
  }

  /** What was said elsewhere before the run was stored as over may still be on its way. It is waited for no longer than for a look. */
  async #hearOut(run: RunRow, signal: AbortSignal): Promise<RunRow> {
    while (this.#ear && !this.#ear.heardOut(run)) if ((await this.#pause(this.#words(), signal)) === undefined) break
    return run
  }

  /** False when the run says that it is over, or waits, wherever it is at work. */
  #words(): Array<Promise<false>> {
    return this.#ear ? [this.#ear.word().then(() => false)] : []
  }

  /** What comes first of these; undefined when it is time to look again. Somebody waits for the end: the process stays. */
  async #pause(events: Array<Promise<boolean>>, signal: AbortSignal): Promise<boolean | undefined> {
    const pause = Promise.withResolvers<undefined>()
    const timer = this.#runtime.clock.after(lookMs, () => pause.resolve(undefined))
    try {
      return await untilAborted(Promise.race([...events, pause.promise]), signal)
    } finally {
      timer.cancel()
    }
  }

  /** Ends the run too: what waits to start it is taken out, what is at work or suspended is aborted. */
  async abort(signalId: string): Promise<void> {
    const cancelled = await unlessNew(this.#runtime.store.cancelSignals(this.#scope, [signalId]), [])
    if (cancelled.length === 0) abortThread(this.#runtime, this.#scope, { expectedRunId: this.#runId })
  }

  /** Hears nothing any more. */
  close(): void {
    this.#over = true
    this.#unfollow()
    this.#ear?.close()
  }

  /** True when a segment of the run is over here. Rejects when this process is closed. */
  #listen(): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    promise.catch(() => {})
    this.#unfollow = this.#runtime.waiters.follow(this.#runId, {
      from: activeContext(),
      emit: (chunk) => {
        if (this.#over || this.#ear) return
        if (chunk.type === 'data-run-resumed') this.#carried = true
        this.#last = chunk.cursor ?? this.#last
        this.#emit(chunk)
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
