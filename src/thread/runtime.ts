import { randomUUID } from 'node:crypto'
import { systemClock, type Clock, type Timer } from '../clock.ts'
import { HeedError, isHeedError } from '../errors.ts'
import { consoleLogger, type Logger } from '../logger.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { Accepted, Fence, MailboxRow, RunRow, Scope, Send, ThreadStore, Window } from '../store/contract.ts'
import { ThreadHost } from './host.ts'
import { LiveThread } from './live.ts'
import type { LocalCall } from './local-call.ts'
import type { SignalOutcome } from './receipt.ts'
import type { Runnable, RunEnvironment } from './runnable.ts'

export interface ThreadRuntimeOptions {
  /** The store, or how to get it when it is first needed. */
  store: ThreadStore | (() => Promise<ThreadStore>)
  clock?: Clock
  logger?: Logger
  newId?: () => string
  /** How long a process counts as alive after its last heartbeat. Defaults to 10 s; it renews three times as often. */
  leaseMs?: number
  /** How often threads that nobody runs are looked for. Defaults to 15 s. */
  sweepMs?: number
}

/** After a store failed in the middle of a thread, how long until it is asked again. */
const retryMs = 1_000

/** The threads of one store in one process: who runs here, who watches, who waits for an outcome. */
export class ThreadRuntime implements RunEnvironment {
  readonly clock: Clock
  readonly logger: Logger
  readonly newId: () => string
  /** Names this process in leases. */
  readonly owner: string
  closing = false

  readonly #source: ThreadStore | (() => Promise<ThreadStore>)
  #store: ThreadStore | undefined
  readonly #agents = new Map<string, Runnable>()
  readonly #hosts = new Map<string, { host: ThreadHost; done: Promise<void> }>()
  readonly #lives = new Map<string, { live: LiveThread; users: number }>()
  readonly #calls = new Map<string, LocalCall>()
  readonly #options = new Map<string, AgentExecutionOptions>()
  readonly #outcomes = new Map<string, Array<(outcome: SignalOutcome) => void>>()
  readonly #leaseMs: number
  readonly #sweepMs: number
  #opened: Promise<void> | undefined
  #heartbeat: Timer | undefined
  readonly #retries = new Set<Timer>()
  #sweeper: Timer | undefined

  constructor(options: ThreadRuntimeOptions) {
    this.#source = options.store
    this.clock = options.clock ?? systemClock
    this.logger = options.logger ?? consoleLogger
    this.newId = options.newId ?? randomUUID
    this.owner = this.newId()
    this.#leaseMs = options.leaseMs ?? 10_000
    this.#sweepMs = options.sweepMs ?? 15_000
  }

  /** Everything that comes after `open()` may rely on it. */
  get store(): ThreadStore {
    if (!this.#store) throw new HeedError('closed', 'The store is not open yet.')
    return this.#store
  }

  // Agents

  register(agent: Runnable): void {
    this.#agents.set(agent.id, agent)
  }

  agent(id: string): Runnable {
    const agent = this.#agents.get(id)
    if (!agent) throw new HeedError('unknown_agent', `No agent '${id}' is known here. Register it: new Heed({ agents: { … } }).`, { details: { agentId: id } })
    return agent
  }

  agentIds(): string[] {
    return [...this.#agents.keys()]
  }

  windowOf(run: Pick<RunRow, 'agentId' | 'options'>): Window {
    return this.agent(run.agentId).window(run.options as AgentExecutionOptions)
  }

  // Life

  /** Opens the store, tells the others that this process lives, and takes up what was left. */
  open(): Promise<void> {
    this.#opened ??= this.#open()
    return this.#opened
  }

  async #open(): Promise<void> {
    this.#store = typeof this.#source === 'function' ? await this.#source() : this.#source
    await this.store.open()
    await this.#beat()
    this.#scheduleSweep()
  }

  /** One row for all threads of this process. A beat that fails is tried again at the next. */
  async #beat(): Promise<void> {
    try {
      await this.store.heartbeat(this.owner, this.clock.now() + this.#leaseMs)
    } catch (error) {
      this.logger.error('the heartbeat failed; another process may take over', { error: String(error) })
    }
    if (!this.closing) this.#heartbeat = this.clock.after(this.#leaseMs / 3, () => void this.#beat(), { background: true })
  }

  /** The first look comes at once: an earlier process may have left something. */
  #scheduleSweep(delay = 0): void {
    if (this.closing) return
    this.#sweeper = this.clock.after(delay, () => {
      this.sweep()
        .catch((error: unknown) => this.logger.error('looking for orphaned threads failed', { error: String(error) }))
        .finally(() => this.#scheduleSweep(this.#sweepMs * (0.75 + Math.random() / 2)))
    }, { background: true })
  }

  /** Takes up threads that nobody runs although something waits in them. Answers how many. */
  async sweep(limit = 100): Promise<number> {
    await this.open()
    const orphans = await this.store.listOrphans(this.clock.now(), limit, this.agentIds())
    let taken = 0
    for (const { threadId } of orphans) if (!this.closing && (await this.wake(threadId))) taken++
    return taken
  }

  /** Claims the thread if it needs a runner, and runs it. */
  async wake(threadId: string): Promise<boolean> {
    const claimed = await this.store.claim(threadId, this.owner, this.agentIds())
    if (claimed) this.run(claimed.fence)
    return claimed !== null
  }

  /**
   * Stops running: threads go on in the next process that opens the store. Sends that were accepted stay accepted; what they
   * came to is for that process to say.
   */
  async close(): Promise<void> {
    if (this.closing) return
    this.closing = true
    this.#heartbeat?.cancel()
    this.#sweeper?.cancel()
    for (const timer of this.#retries) timer.cancel()
    const closed = new HeedError('closed', 'This Heed was closed.')
    const working = [...this.#hosts.values()]
    for (const { host } of working) host.abort(closed, false)
    await Promise.all(working.map(({ done }) => done))
    for (const waiting of this.#outcomes.values()) for (const settle of waiting) settle({ action: 'queued', reason: 'closed' })
    this.#outcomes.clear()
    for (const call of this.#calls.values()) call.reject(closed)
    this.#calls.clear()
    for (const { live } of this.#lives.values()) live.ring()
    if (!this.#opened) return
    await this.#opened.catch(() => {})
    this.#heartbeat?.cancel()
    this.#sweeper?.cancel()
    if (!this.#store) return
    await this.#store.resign(this.owner)
    await this.#store.close()
  }

  // Running

  /** Runs a thread whose lease this process has. A run before it on the same thread says its last word first. */
  run(fence: Fence): void {
    const before = this.#hosts.get(fence.threadId)
    const live = this.hold(fence.threadId)
    const host = new ThreadHost(this, fence, live)
    const done = (before?.done ?? Promise.resolve())
      .then(() => host.work())
      .catch((error: unknown) => this.#stopped(fence, error))
      .finally(() => {
        if (this.#hosts.get(fence.threadId)?.host === host) this.#hosts.delete(fence.threadId)
        this.letGo(fence.threadId)
      })
    this.#hosts.set(fence.threadId, { host, done })
  }

  #stopped(fence: Fence, error: unknown): void {
    if (isHeedError(error) && (error.code === 'closed' || error.code === 'fenced')) return
    this.logger.error('a thread stopped; it is taken up again', { threadId: fence.threadId, error: String(error) })
    const timer = this.clock.after(retryMs, () => {
      this.#retries.delete(timer)
      this.run(fence)
    }, { background: true })
    this.#retries.add(timer)
  }

  hostOf(threadId: string): ThreadHost | undefined {
    return this.#hosts.get(threadId)?.host
  }

  hosts(): ThreadHost[] {
    return [...this.#hosts.values()].map(({ host }) => host)
  }

  /** The live side of a thread, kept as long as somebody runs or watches it. Every `hold` has its `letGo`. */
  hold(threadId: string): LiveThread {
    let entry = this.#lives.get(threadId)
    if (!entry) this.#lives.set(threadId, (entry = { live: new LiveThread(threadId), users: 0 }))
    entry.users++
    return entry.live
  }

  letGo(threadId: string): void {
    const entry = this.#lives.get(threadId)
    if (entry && --entry.users === 0) this.#lives.delete(threadId)
  }

  liveOf(threadId: string): LiveThread | undefined {
    return this.#lives.get(threadId)?.live
  }

  // Sends and their outcomes

  /** Stores a send and starts what it starts. */
  async accept(send: Send): Promise<Accepted> {
    if (this.closing) throw new HeedError('closed', 'This Heed was closed. Send to the process that runs now.')
    await this.open()
    const [answer] = await this.store.accept([send])
    if (!answer) throw new HeedError('store_failed', 'The store gave no answer to a send.')
    if ('error' in answer) throw answer.error
    if (answer.fence) this.run(answer.fence)
    else if (answer.route === 'interrupt') this.hostOf(send.threadId)?.interrupt()
    return answer
  }

  expectCall(signalId: string, call: LocalCall): void {
    this.#calls.set(signalId, call)
  }

  /** Options of a run that a signal may start, as they are in this process. A signal that starts none needs none. */
  expectOptions(threadId: string, signalId: string, options: AgentExecutionOptions): void {
    this.#options.set(`${threadId}\0${signalId}`, options)
  }

  takeCall(signalId: string | undefined): LocalCall | undefined {
    if (signalId === undefined) return undefined
    const call = this.#calls.get(signalId)
    this.#calls.delete(signalId)
    return call
  }

  /** Settles when the signal is taken into a run here. */
  expectOutcome(scope: Scope, signalId: string): Promise<SignalOutcome> {
    const key = `${scope.threadId}\0${signalId}`
    return new Promise((resolve) => {
      const waiting = this.#outcomes.get(key)
      if (waiting) waiting.push(resolve)
      else this.#outcomes.set(key, [resolve])
    })
  }

  settleOutcome(threadId: string, signalId: string, outcome: SignalOutcome): void {
    const key = `${threadId}\0${signalId}`
    for (const settle of this.#outcomes.get(key) ?? []) settle(outcome)
    this.#outcomes.delete(key)
    // The options of one that waits are needed when its turn comes.
    if (outcome.action !== 'queued') this.#options.delete(key)
  }

  /** What waited on a thread was cleared with the run before it. */
  cleared(threadId: string): void {
    for (const key of [...this.#outcomes.keys(), ...this.#options.keys()]) {
      const [thread, signalId] = key.split('\0')
      if (thread === threadId && signalId !== undefined) this.settleOutcome(threadId, signalId, { action: 'discarded', reason: 'cleared' })
    }
  }

  takeOptions(mail: MailboxRow | undefined): AgentExecutionOptions | undefined {
    return mail && this.#options.get(`${mail.threadId}\0${mail.id}`)
  }

  took(taken: readonly MailboxRow[], runId: string, step: number, action: 'woke' | 'delivered'): void {
    for (const mail of taken) this.settleOutcome(mail.threadId, mail.id, { action, runId, step })
  }
}
