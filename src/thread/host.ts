import { HeedError, isHeedError } from '../errors.ts'
import type { JSONObject } from '../json.ts'
import type { MessageRow } from '../message/row.ts'
import type { Chunk } from '../run/chunk.ts'
import { runLoop } from '../run/loop.ts'
import { noUsage } from '../run/model-parts.ts'
import { chunkError } from '../run/provider-error.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { Run } from '../run/run.ts'
import type { RunCommit, RunCommitEnd, RunCommitted, RunHost } from '../run/run-host.ts'
import { failedResult, type RunResult } from '../run/run-result.ts'
import type { BegunRun, Fence, MailboxRow, RunEnd, StepCommitted } from '../store/contract.ts'
import { continuationOf } from './continuation.ts'
import type { LiveThread } from './live.ts'
import type { LocalCall } from './local-call.ts'
import { localOptions } from './local-call.ts'
import type { ThreadRuntime } from './runtime.ts'

/** Runs one thread for as long as this process has its lease: run after run, until a commit finds nothing more to do. */
export class ThreadHost implements RunHost {
  readonly fence: Fence
  readonly live: LiveThread
  readonly #runtime: ThreadRuntime
  #run: Run | undefined
  #begun: BegunRun | undefined
  #call: LocalCall | undefined
  #options: AgentExecutionOptions = {}
  #more = false
  #clearPending = false
  #suspended = false

  constructor(runtime: ThreadRuntime, fence: Fence, live: LiveThread) {
    this.#runtime = runtime
    this.fence = fence
    this.live = live
  }

  get runId(): string | undefined {
    return this.#begun?.run.runId
  }

  /** Resolves when the thread is released, handed over, or lost to another process. */
  async work(): Promise<void> {
    this.live.enter(this.fence.epoch)
    for (;;) {
      const begun = await this.#runtime.store.beginRun(this.fence, (run) => this.#runtime.windowOf(run), this.#runtime.agentIds())
      if (!begun) return
      this.#more = false
      await this.#perform(begun)
      if (!this.#more) return
    }
  }

  abort(reason: unknown, clearPending: boolean): boolean {
    if (!this.#run || this.#run.signal.aborted) return false
    this.#clearPending = clearPending
    this.#run.abort(reason)
    return true
  }

  /** Cuts the model's stream so that what just arrived enters at once. */
  interrupt(): void {
    this.#run?.interrupt()
  }

  async #perform(begun: BegunRun): Promise<void> {
    const { run, taken, rows } = begun
    this.#begun = begun
    this.#call = this.#runtime.takeCall(taken[0]?.id) ?? this.#runtime.takeCall(run.runId)
    this.#options = localOptions(run.options, this.#call?.options ?? this.#runtime.takeOptions(taken[0]))
    this.#clearPending = false
    this.#suspended = false
    this.live.startRun(run.runId, lastSeq(rows.slice(0, rows.length - takenRows(taken).length)))
    this.live.committed(lastSeq(rows))
    this.#runtime.took(taken, run.runId, 0, 'woke')
    try {
      const result = await this.#loop(begun)
      this.#call?.resolve(result)
    } catch (error) {
      this.#call?.reject(error)
      throw error
    } finally {
      this.#run = undefined
      this.#call = undefined
      if (!this.#suspended) this.live.endRun()
    }
  }

  async #loop(begun: BegunRun): Promise<RunResult> {
    const { run, thread, taken, rows } = begun
    const agent = this.#runtime.agent(run.agentId)
    const options = this.#options
    let started: Run
    try {
      const setup = await agent.prepare(options, {
        runId: run.runId,
        threadId: thread.id,
        resourceId: thread.resourceId,
        rows,
        inputCount: takenRows(taken).length,
        stepsDone: run.step,
      }, this.#runtime)
      started = new Run(setup, this)
    } catch (error) {
      return this.#failToStart(run.runId, run.step, error)
    }
    this.#run = started
    const release = follow(started, options.abortSignal)
    try {
      if (this.#runtime.closing) throw closed()
      const idempotent = (name: string) => started.tools.tools.get(name)?.tool.idempotent ?? false
      return await runLoop(started, begun.resumed ? continuationOf(run, rows, idempotent) : undefined)
    } finally {
      release()
    }
  }

  /** What the agent needs could not be found: the run is over before its first step, and everybody is told. */
  async #failToStart(runId: string, step: number, thrown: unknown): Promise<RunResult> {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    await this.commit({ step, rows: [], end: { status: 'failed', usage: noUsage, error } })
    this.emit({ type: 'error', runId, from: 'AGENT', payload: { error: chunkError(error) } })
    return failedResult(runId, error)
  }

  emit(chunk: Chunk): void {
    this.live.publish(chunk)
    this.#call?.emit(chunk)
  }

  async commit(commit: RunCommit): Promise<RunCommitted> {
    if (this.#runtime.closing) throw closed()
    const { run } = this.#begun as BegunRun
    const { end, ...step } = commit
    let committed: StepCommitted
    try {
      committed = await this.#runtime.store.commitStep(this.fence, { ...step, runId: run.runId, ...(end ? { end: this.#endOf(end) } : {}) })
    } catch (error) {
      // Whoever has the thread now writes and speaks for it. Nothing of this run may reach anybody any more.
      if (isHeedError(error) && error.code === 'fenced') this.#run?.abort(error)
      throw error
    }
    const { taken, ended, more, rows } = committed
    this.live.committed(lastSeq([...rows, ...takenRows(taken)]))
    this.#runtime.took(taken, run.runId, commit.step + 1, 'delivered')
    if (ended) {
      this.#more = more
      if (this.#clearPending) this.#runtime.cleared(this.fence.threadId)
      this.#suspended = end?.status === 'suspended'
    }
    return { entered: taken.map((mail) => mail.rows), ended }
  }

  async revise(rows: readonly MessageRow[]): Promise<void> {
    if (this.#runtime.closing) throw closed()
    const { run } = this.#begun as BegunRun
    await this.#runtime.store.commitStep(this.fence, { runId: run.runId, step: this.#run?.step ?? run.step, rows: [], revised: [...rows] })
  }

  #endOf(end: RunCommitEnd): RunEnd {
    switch (end.status) {
      case 'suspended':
        return { status: 'suspended', calls: end.calls, usage: { ...end.usage } }
      case 'rejected':
        return { status: 'rejected', error: { message: end.reason } }
      default:
        return {
          status: end.status,
          usage: { ...end.usage },
          ...(end.error ? { error: chunkError(end.error) as unknown as JSONObject } : {}),
          ...(this.#clearPending ? { clearPending: true } : {}),
        }
    }
  }
}

/** Ends the run with the caller's signal; answers how to stop listening to it. */
function follow(run: Run, signal: AbortSignal | undefined): () => void {
  if (!signal) return () => {}
  const onAbort = () => run.abort(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}

function takenRows(taken: readonly MailboxRow[]): MessageRow[] {
  return taken.flatMap((mail) => mail.rows)
}

function lastSeq(rows: readonly MessageRow[]): number | undefined {
  return rows.at(-1)?.seq
}

function closed(): HeedError {
  return new HeedError('closed', 'This Heed was closed. The thread goes on in the next process that opens it.')
}
