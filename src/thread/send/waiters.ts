import type { AgentExecutionOptions } from '../../run/options.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { Context } from '../../tracing/telemetry.ts'
import type { SignalOutcome } from './receipt.ts'
import type { KeepAlive } from '../../base/promises.ts'

/** How many suspended runs keep what only this process has of their options. Beyond it the oldest go on with what is stored. */
const keptRuns = 10_000

/** What a run has only in this process: the caller that holds its stream, and options that are no JSON. */
export interface LocalCall {
  /** Absent for one that follows a run which has its options already. */
  options?: AgentExecutionOptions
  /** What was open where the call was made, when somebody traces. */
  from?: Context | undefined
  emit(chunk: Chunk): void
  resolve(result: RunResult): void
  reject(error: unknown): void
}

interface Expected {
  waiting: Array<(outcome: SignalOutcome) => void>
  accepted: boolean
}

/** The callers of this process that wait for outcomes and results, and the options of later runs that are not JSON. */
export class Waiters {
  readonly #outcomes = new ByThread<Expected>()
  readonly #options = new ByThread<AgentExecutionOptions>()
  readonly #calls = new ByThread<LocalCall>()
  /** What runs in other processes will say. Nothing else keeps a process alive that waits for it. */
  readonly #elsewhere = new ByThread<true>()
  readonly #keepAlive: KeepAlive
  readonly #followers = new Map<string, LocalCall[]>()
  readonly #kept = new Map<string, AgentExecutionOptions>()

  constructor(keepAlive: KeepAlive) {
    this.#keepAlive = keepAlive
  }

  /** Settles when the signal is taken into a run here, or when it is certain that it won't be. */
  outcome(threadId: string, signalId: string): Promise<SignalOutcome> {
    return new Promise((resolve) => {
      const expected = this.#outcomes.get(threadId, signalId)
      if (expected) expected.waiting.push(resolve)
      else this.#outcomes.set(threadId, signalId, { waiting: [resolve], accepted: false })
    })
  }

  /** The store has the signal. From here on, whoever stops running its thread looks what became of it. */
  accepted(threadId: string, signalId: string): void {
    const expected = this.#outcomes.get(threadId, signalId)
    if (expected) expected.accepted = true
  }

  awaitsOutcome(threadId: string, signalId: string): boolean {
    return this.#outcomes.get(threadId, signalId) !== undefined
  }

  settle(threadId: string, signalId: string, outcome: SignalOutcome): void {
    for (const resolve of this.#outcomes.take(threadId, signalId)?.waiting ?? []) resolve(outcome)
    this.#known(threadId, signalId)
    // The options of one that waits are needed when its turn comes.
    if (outcome.action !== 'queued') this.#options.take(threadId, signalId)
  }

  /** Options of a run that a signal may start, as they are in this process. A signal that starts none needs none. */
  options(threadId: string, signalId: string, options: AgentExecutionOptions): void {
    this.#options.set(threadId, signalId, options)
  }

  /** Nothing waits on the thread any more. */
  dropOptions(threadId: string): void {
    this.#options.drop(threadId)
  }

  optionsOf(taken: readonly MailboxRow[]): AgentExecutionOptions | undefined {
    for (const { threadId, id } of taken) {
      const options = this.#options.get(threadId, id)
      if (options) return options
    }
    return undefined
  }

  /** A caller that waits for its turn on a thread. */
  call(threadId: string, signalId: string, call: LocalCall): void {
    this.#calls.set(threadId, signalId, call)
  }

  takeCall(threadId: string, signalId: string | undefined): LocalCall | undefined {
    if (signalId === undefined) return undefined
    this.#known(threadId, signalId)
    return this.#calls.take(threadId, signalId)
  }

  /** A caller that follows a run from where it is continued. */
  follow(runId: string, call: LocalCall): () => void {
    const followers = this.#followers.get(runId) ?? []
    followers.push(call)
    this.#followers.set(runId, followers)
    return () => {
      followers.splice(followers.indexOf(call), 1)
      if (followers.length === 0 && this.#followers.get(runId) === followers) this.#followers.delete(runId)
    }
  }

  takeFollowers(runId: string): LocalCall[] {
    const followers = this.#followers.get(runId) ?? []
    this.#followers.delete(runId)
    return [...followers]
  }

  /** A run that is suspended here may be continued here: with the tools, callbacks and context it had. */
  keepOptions(runId: string, options: AgentExecutionOptions): void {
    this.#kept.set(runId, options)
    const oldest = this.#kept.size > keptRuns ? this.#kept.keys().next().value : undefined
    if (oldest !== undefined) this.#kept.delete(oldest)
  }

  optionsKept(runId: string): AgentExecutionOptions | undefined {
    return this.#kept.get(runId)
  }

  takeOptions(runId: string): AgentExecutionOptions | undefined {
    const options = this.#kept.get(runId)
    this.#kept.delete(runId)
    return options
  }

  /** It is stored, and not for this process to say what becomes of it. */
  awaitElsewhere(threadId: string, signalId: string): void {
    if (this.awaitsElsewhere(threadId, signalId) || !(this.#outcomes.get(threadId, signalId) || this.#calls.get(threadId, signalId))) return
    this.#elsewhere.set(threadId, signalId, true)
    this.#keepAlive.begin()
  }

  #known(threadId: string, signalId: string): void {
    if (this.#elsewhere.take(threadId, signalId)) this.#keepAlive.end()
  }

  awaitsElsewhere(threadId: string, signalId: string): boolean {
    return this.#elsewhere.get(threadId, signalId) === true
  }

  /** Threads on which other processes are waited for. */
  threadsElsewhere(): string[] {
    return this.#elsewhere.threads()
  }

  /** Ids of signals that were accepted on a thread and whose outcome is not known, and of calls that wait there. */
  waitingOn(threadId: string): { signals: string[]; calls: string[] } {
    const signals = this.#outcomes.ids(threadId).filter((id) => this.#outcomes.get(threadId, id)?.accepted)
    return { signals, calls: this.#calls.ids(threadId) }
  }

  /** Everything ends here: what was accepted stays accepted, and is for the next process. */
  close(error: Error): void {
    for (const { waiting } of this.#outcomes.drain()) for (const resolve of waiting) resolve({ action: 'queued', reason: 'closed' })
    for (const call of this.#calls.drain()) call.reject(error)
    for (const followers of this.#followers.values()) for (const call of followers) call.reject(error)
    this.#options.drain()
    for (const _ of this.#elsewhere.drain()) this.#keepAlive.end()
    this.#followers.clear()
    this.#kept.clear()
  }
}

class ByThread<T> {
  readonly #threads = new Map<string, Map<string, T>>()

  get(threadId: string, id: string): T | undefined {
    return this.#threads.get(threadId)?.get(id)
  }

  set(threadId: string, id: string, value: T): void {
    let entries = this.#threads.get(threadId)
    if (!entries) this.#threads.set(threadId, (entries = new Map()))
    entries.set(id, value)
  }

  take(threadId: string, id: string): T | undefined {
    const entries = this.#threads.get(threadId)
    const value = entries?.get(id)
    if (entries?.delete(id) && entries.size === 0) this.#threads.delete(threadId)
    return value
  }

  drop(threadId: string): void {
    this.#threads.delete(threadId)
  }

  threads(): string[] {
    return [...this.#threads.keys()]
  }

  ids(threadId: string): string[] {
    return [...(this.#threads.get(threadId)?.keys() ?? [])]
  }

  drain(): T[] {
    const all = [...this.#threads.values()].flatMap((entries) => [...entries.values()])
    this.#threads.clear()
    return all
  }
}
