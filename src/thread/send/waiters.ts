import type { AgentExecutionOptions } from '../../run/options.ts'
import type { MailboxRow } from '../../store/contract/threads.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { Context } from '../../tracing/telemetry.ts'
import type { SignalOutcome } from './receipt.ts'
import type { KeepAlive } from '../../base/promises.ts'

/** How many suspended runs, and queued signals, retain the options that only this process has. Older ones have the stored options. */
const maxRetained = 10_000

/** The parts of a run that only this process has: its caller, and options that are not JSON. */
export interface LocalCall {
  /** Absent for a follower of a run that has its options already. */
  options?: AgentExecutionOptions
  /** The trace context of the caller, where an SDK is registered. */
  from?: Context | undefined
  emit(chunk: Chunk): void
  resolve(result: RunResult): void
  reject(error: unknown): void
}

interface OutcomeWaiters {
  waiting: Array<(outcome: SignalOutcome) => void>
  accepted: boolean
}

/** The callers of this process that wait for outcomes and results, and the options of later runs that are not JSON. */
export class Waiters {
  readonly #outcomes = new ByThread<OutcomeWaiters>()
  readonly #options = new ByThread<AgentExecutionOptions>()
  /** Queued signals with options, in the order of their outcomes: that another process has run one is not heard of here. */
  readonly #queued = new Map<string, { threadId: string; signalId: string }>()
  readonly #calls = new ByThread<{ call: LocalCall; accepted: boolean }>()
  /** Signals and calls that other processes resolve. They keep this process alive. */
  readonly #remote = new ByThread<true>()
  readonly #keepAlive: KeepAlive
  readonly #followers = new Map<string, LocalCall[]>()
  readonly #retained = new Map<string, AgentExecutionOptions>()
  readonly #closed = new AbortController()

  constructor(keepAlive: KeepAlive) {
    this.#keepAlive = keepAlive
  }

  /** Aborts, with the error that callers receive, when this process waits for nothing more. */
  get closed(): AbortSignal {
    return this.#closed.signal
  }

  /** Resolves when a run of this process drains the signal, or when another outcome is certain. */
  waitForOutcome(threadId: string, signalId: string): Promise<SignalOutcome> {
    return new Promise((resolve) => {
      const expected = this.#outcomes.get(threadId, signalId)
      if (expected) expected.waiting.push(resolve)
      else this.#outcomes.set(threadId, signalId, { waiting: [resolve], accepted: false })
    })
  }

  /** The store has the signal. From here on, the end of a run on its thread resolves its outcome from the store. */
  markAccepted(threadId: string, signalId: string): void {
    const expected = this.#outcomes.get(threadId, signalId)
    if (expected) expected.accepted = true
  }

  awaitsOutcome(threadId: string, signalId: string): boolean {
    return this.#outcomes.get(threadId, signalId) !== undefined
  }

  resolveOutcome(threadId: string, signalId: string, outcome: SignalOutcome): void {
    for (const resolve of this.#outcomes.take(threadId, signalId)?.waiting ?? []) resolve(outcome)
    this.#endRemoteWait(threadId, signalId)
    // The options of a queued signal are needed when its run begins.
    if (outcome.action === 'queued') this.#retainQueued(threadId, signalId)
    else if (this.#options.take(threadId, signalId)) this.#queued.delete(keyOf(threadId, signalId))
  }

  #retainQueued(threadId: string, signalId: string): void {
    if (!this.#options.get(threadId, signalId)) return
    this.#queued.set(keyOf(threadId, signalId), { threadId, signalId })
    const [oldest] = this.#queued.size > maxRetained ? this.#queued : []
    if (!oldest) return
    this.#queued.delete(oldest[0])
    this.#options.take(oldest[1].threadId, oldest[1].signalId)
  }

  /** The options of a run that a signal may start, as this process has them. */
  setOptions(threadId: string, signalId: string, options: AgentExecutionOptions): void {
    this.#options.set(threadId, signalId, options)
  }

  /** These signals were cancelled; without ids, no signal is pending on the thread. */
  dropOptions(threadId: string, ids?: readonly string[]): void {
    if (!ids) this.#options.drop(threadId)
    else for (const id of ids) this.#options.take(threadId, id)
  }

  optionsOf(taken: readonly MailboxRow[]): AgentExecutionOptions | undefined {
    for (const { threadId, id } of taken) {
      const options = this.#options.get(threadId, id)
      if (options) return options
    }
    return undefined
  }

  /** The caller of a queued run. */
  addCall(threadId: string, signalId: string, call: LocalCall): void {
    this.#calls.set(threadId, signalId, { call, accepted: false })
  }

  /** The store has the call. */
  markCallAccepted(threadId: string, signalId: string): void {
    const expected = this.#calls.get(threadId, signalId)
    if (expected) expected.accepted = true
  }

  takeCall(threadId: string, signalId: string | undefined): LocalCall | undefined {
    if (signalId === undefined) return undefined
    this.#endRemoteWait(threadId, signalId)
    return this.#calls.take(threadId, signalId)?.call
  }

  /** A caller that follows a run from where it is continued. Returns a function that ends this; it returns whether the run still waited. */
  follow(runId: string, call: LocalCall): () => boolean {
    const followers = this.#followers.get(runId) ?? []
    followers.push(call)
    this.#followers.set(runId, followers)
    return () => {
      const isWaiting = this.#followers.get(runId) === followers && followers.includes(call)
      if (isWaiting) followers.splice(followers.indexOf(call), 1)
      if (isWaiting && followers.length === 0) this.#followers.delete(runId)
      return isWaiting
    }
  }

  takeFollowers(runId: string): LocalCall[] {
    const followers = this.#followers.get(runId) ?? []
    this.#followers.delete(runId)
    return [...followers]
  }

  /** A run that is suspended in this process may continue here with its tools, callbacks and context. */
  retainOptions(runId: string, options: AgentExecutionOptions): void {
    this.#retained.set(runId, options)
    const oldest = this.#retained.size > maxRetained ? this.#retained.keys().next().value : undefined
    if (oldest !== undefined) this.#retained.delete(oldest)
  }

  retainedOptions(runId: string): AgentExecutionOptions | undefined {
    return this.#retained.get(runId)
  }

  takeRetainedOptions(runId: string): AgentExecutionOptions | undefined {
    const options = this.#retained.get(runId)
    this.#retained.delete(runId)
    return options
  }

  /** Another process determines the outcome of a stored signal. */
  awaitRemote(threadId: string, signalId: string): void {
    if (this.awaitsRemote(threadId, signalId) || !(this.#outcomes.get(threadId, signalId) || this.#calls.get(threadId, signalId))) return
    this.#remote.set(threadId, signalId, true)
    this.#keepAlive.begin()
  }

  #endRemoteWait(threadId: string, signalId: string): void {
    if (this.#remote.take(threadId, signalId)) this.#keepAlive.end()
  }

  awaitsRemote(threadId: string, signalId: string): boolean {
    return this.#remote.get(threadId, signalId) === true
  }

  /** Threads with signals or calls that other processes resolve. */
  threadsAwaitedRemotely(): string[] {
    return this.#remote.threads()
  }

  /** The accepted signals of a thread without an outcome, and the queued calls that were accepted. */
  acceptedOn(threadId: string): { signals: string[]; calls: string[] } {
    const signals = this.#outcomes.ids(threadId).filter((id) => this.#outcomes.get(threadId, id)?.accepted)
    const calls = this.#calls.ids(threadId).filter((id) => this.#calls.get(threadId, id)?.accepted)
    return { signals, calls }
  }

  /** Threads on which a signal or a call waits. */
  threads(): string[] {
    return [...this.#outcomes.threads(), ...this.#calls.threads()]
  }

  /** Rejects all callers. Accepted signals stay accepted; the next process handles them. */
  close(error: Error): void {
    for (const { waiting } of this.#outcomes.drain()) for (const resolve of waiting) resolve({ action: 'queued', reason: 'closed' })
    for (const { call } of this.#calls.drain()) call.reject(error)
    for (const followers of this.#followers.values()) for (const call of followers) call.reject(error)
    this.#options.drain()
    this.#queued.clear()
    for (const _ of this.#remote.drain()) this.#keepAlive.end()
    this.#followers.clear()
    this.#retained.clear()
    this.#closed.abort(error)
  }
}

function keyOf(threadId: string, signalId: string): string {
  return JSON.stringify([threadId, signalId])
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
