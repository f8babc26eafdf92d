import { HeedError } from '../base/errors.ts'
import { InFlight } from '../base/promises.ts'
import type { RunEdit } from '../editor/contract.ts'
import type { MessageRow } from '../message/row.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { SuspendedCall } from '../store/contract/threads.ts'
import type { BackgroundService } from '../thread/runtime/runnable.ts'
import type { LocalCall } from '../thread/send/waiters.ts'

/** A run without a thread, from the call that starts it until its last chunk. */
interface EphemeralRun {
  /** Aborts when this process stops running, with the reason. */
  readonly closing: AbortSignal
  end(): void
}

/** A run without a thread that waits for decisions: what it continues with. */
interface SuspendedEphemeralRun {
  readonly agentId: string
  /** Its input and what it added, complete as soon as its last chunk is published. */
  readonly rows: () => readonly MessageRow[]
  readonly options: AgentExecutionOptions
  /** The step that made the calls. */
  readonly step: number
  readonly calls: readonly SuspendedCall[]
  /** The `toolCallId`s of requests that were decided before these calls asked. */
  readonly decided: ReadonlySet<string>
  /** The version of the agent that it began with. */
  readonly edit: RunEdit | undefined
  /** The callers that have decided a call and read what follows. */
  readonly followers: Array<Pick<LocalCall, 'emit' | 'resolve' | 'reject'>>
}

/** How many suspended runs a site keeps. Beyond it, the oldest can no longer be decided. */
export const maxSuspended = 1_000

/** Runs of which nothing is stored. No other process can continue them, so that they end with this one. */
export class EphemeralRuns implements BackgroundService {
  readonly #closing = new Set<AbortController>()
  readonly #suspended = new Map<string, SuspendedEphemeralRun>()
  readonly #inFlight = new InFlight()
  #closed = false

  /** The caller must call `end()` of what it gets. */
  begin(): EphemeralRun {
    if (this.#closed) throw new HeedError('closed', 'This Heed was closed. Ask the process that runs now.')
    const stop = new AbortController()
    this.#closing.add(stop)
    this.#inFlight.begin()
    return {
      closing: stop.signal,
      end: () => {
        if (this.#closing.delete(stop)) this.#inFlight.end()
      },
    }
  }

  /** The suspended run with this id. */
  suspended(runId: string): SuspendedEphemeralRun | undefined {
    return this.#suspended.get(runId)
  }

  /** Keeps a run until its calls are decided. */
  suspend(runId: string, run: SuspendedEphemeralRun): void {
    if (this.#closed) return
    this.#suspended.set(runId, run)
    const oldest = this.#suspended.size > maxSuspended ? this.#suspended.keys().next().value : undefined
    if (oldest !== undefined) this.forget(oldest)
  }

  /** The run can no longer be decided. */
  forget(runId: string): void {
    this.#drop(runId, new HeedError('run_not_suspended', 'Too many runs without a thread wait for decisions.'))
  }

  /** The run continues: its calls are decided. */
  resume(runId: string): void {
    this.#suspended.delete(runId)
  }

  #drop(runId: string, reason: HeedError): void {
    for (const follower of this.#suspended.get(runId)?.followers ?? []) follower.reject(reason)
    this.#suspended.delete(runId)
  }

  /** Aborts all of them and rejects later ones. Resolves when the last has ended. */
  close(): Promise<void> {
    this.#closed = true
    const reason = new HeedError('closed', 'This Heed was closed.')
    for (const stop of this.#closing) stop.abort(reason)
    for (const runId of this.#suspended.keys()) this.#drop(runId, reason)
    return this.#inFlight.whenIdle()
  }
}
