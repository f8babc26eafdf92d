import type { Agent } from '../agent/agent.ts'
import { checkNames, checkWhole, refused } from '../base/arguments.ts'
import { systemClock, withTimeout, type Clock } from '../base/clock.ts'
import { describe, HeedError } from '../base/errors.ts'
import type { HeedEditor } from '../editor/editor.ts'
import { cronOf } from '../schedule/timing.ts'
import { inboxSettings } from '../inbox/options.ts'
import { consoleLogger, redacting, type Logger } from '../base/logger.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ScorerLike } from '../scorers/contract.ts'
import type { ScoreRow } from '../store/contract/scores.ts'
import { RunSlotPool } from '../thread/runtime/run-slots.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { Sites, type Site } from './site.ts'
import { Channels } from './channels.ts'
import { checkConfig, type CloseOptions, type HeedConfig, type HeedWorkflow, type TickOptions, type TickResult } from './config.ts'
import { receivePolicyOf, toolPolicyOf } from './agent-policy.ts'
import { withDeadline, type Policies } from './policies.ts'
import {
  backfillScores, countScores, listScores, retryScores, saveScore, scorersById, type ScoreBackfill, type ScoreInput,
  type ScoreListQuery, type ScorePage, type ScoreRetry,
} from './scores.ts'
import { Sources } from './sources.ts'
import type { TracingOptions } from '../tracing/options.ts'

/** How long a close waits for the delivery of events that sources have polled. */
const sourcesMs = 5_000

/** The agents of a program and the storage of their threads. */
export class Heed<
  Agents extends Record<string, Agent> = Record<string, Agent>,
  Workflows extends Record<string, HeedWorkflow> = Record<string, HeedWorkflow>,
  Scorers extends Record<string, ScorerLike> = Record<string, ScorerLike>,
> {
  readonly logger: Logger
  readonly clock: Clock
  /** @internal */
  readonly tracing: TracingOptions | false | undefined
  /** @internal */
  readonly policies: Policies | undefined
  /** @internal */
  readonly sites: Sites
  /** @internal */
  readonly sources: Sources
  /** The channels, and the replies of those in mode `message`. */
  readonly channels: Channels
  readonly #agents: Agents
  readonly #workflows: Workflows
  readonly #scorers: Scorers
  /** @internal Its scorers by their ids. */
  readonly scorers: ReadonlyMap<string, ScorerLike>
  readonly #editor: HeedEditor | undefined
  /** Agents that named this Heed themselves, by their ids. */
  readonly #joined = new Map<string, Agent>()
  /** Set from the first use on. */
  #begun: Promise<void> | undefined
  #reconciled: Promise<void> | undefined
  /** The last failure of a start in the background. */
  #reported: string | undefined

  constructor(config: HeedConfig<Agents, Workflows, Scorers> = {}) {
    checkConfig(config)
    this.logger = redacting(config.logger ?? consoleLogger)
    this.clock = config.clock ?? systemClock
    this.tracing = config.tracing
    const policies = config.policies && withDeadline(config.policies, this.clock)
    this.policies = policies
    this.#scorers = config.scorers ?? ({} as Scorers)
    this.scorers = scorersById(config.scorers)
    const inbox = inboxSettings(config.notifications)
    if (inbox.cron !== undefined && cronOf(inbox.cron, undefined, 'notifications.dispatch.cron').nextAfter(this.clock.now()) === undefined)
      throw refused('notifications.dispatch.cron', 'a cron expression whose time comes')
    this.sites = new Sites({
      clock: this.clock,
      logger: this.logger,
      tracing: config.tracing,
      runSlots: new RunSlotPool(config.limits),
      inbox,
      editor: config.editor,
      scorers: this.scorers,
      hasChannels: () => this.channels.size > 0,
      onOpen: () => this.#onStorageOpen(),
      ...(config.storage ? { storage: config.storage } : {}),
      ...(config.bus ? { bus: config.bus } : {}),
      ...(policies && {
        receivePolicy: receivePolicyOf(policies, this.logger), toolPolicy: toolPolicyOf(policies, this.logger),
        policyCategories: policies.namedCategories,
      }),
    })
    this.#agents = config.agents ?? ({} as Agents)
    const seen = new Map<string, string>()
    for (const [key, agent] of Object.entries(this.#agents)) {
      if (typeof (agent as Partial<Agent> | undefined)?.join !== 'function')
        throw new HeedError('invalid_agent', `'${key}' in agents is not an agent. Create it with new Agent().`, { details: { key } })
      agent.join(this, key)
      const other = seen.get(agent.id)
      if (other !== undefined)
        throw new HeedError('invalid_agent', `The agents '${other}' and '${key}' have the same id '${agent.id}'. Give one of them another.`)
      seen.set(agent.id, key)
    }
    this.#workflows = config.workflows ?? ({} as Workflows)
    for (const [key, workflow] of Object.entries(this.#workflows)) this.#addWorkflow(key, workflow)
    this.#editor = config.editor
    this.#editor?.join(this)
    this.sources = new Sources(this, config.sources ?? [])
    this.channels = new Channels(this, config.channels ?? [])
  }

  #addWorkflow(key: string, workflow: HeedWorkflow): void {
    if (typeof (workflow as Partial<HeedWorkflow> | undefined)?.join !== 'function')
      throw new HeedError('invalid_workflow', `'${key}' in workflows is not a workflow. Create it with createWorkflow() of ` +
        `heed/workflows.`, {
        details: { key },
      })
    workflow.join(this)
    const other = Object.entries(this.#workflows).find(([name, one]) => name !== key && one.id === workflow.id)?.[0]
    if (other !== undefined)
      throw new HeedError(
        'invalid_workflow', `The workflows '${other}' and '${key}' have the same id '${workflow.id}'. Clone one: cloneWorkflow().`,
      )
  }

  /** The workflow under this key of `workflows`. */
  getWorkflow<Key extends keyof Workflows & string>(key: Key): Workflows[Key] {
    return ofKey('workflow', this.#workflows, key)
  }

  /** @internal The workflow with this id, else the one under this key. */
  findWorkflow(name: string): HeedWorkflow | undefined {
    const byId = Object.values<HeedWorkflow>(this.#workflows).find(({ id }) => id === name)
    return byId ?? (Object.hasOwn(this.#workflows, name) ? this.#workflows[name] : undefined)
  }

  getWorkflowById(id: string): HeedWorkflow {
    const workflow = Object.values(this.#workflows).find((candidate) => candidate.id === id)
    if (!workflow)
      throw new HeedError('unknown_workflow', `There is no workflow with the id '${String(id)}'.`, { details: { workflowId: id } })
    return workflow
  }

  listWorkflows(): Workflows {
    return { ...this.#workflows }
  }

  /** The scorer under this key of `scorers`. */
  getScorer<Key extends keyof Scorers & string>(key: Key): Scorers[Key] {
    return ofKey('scorer', this.#scorers, key)
  }

  getScorerById(id: string): ScorerLike {
    const scorer = this.scorers.get(id)
    if (scorer) return scorer
    throw new HeedError('unknown_scorer', `There is no scorer with the id '${String(id)}'.`, { details: { scorerId: id } })
  }

  /** The scorers that were passed to it. Those of an agent are listed by the agent. */
  listScorers(): Scorers {
    return { ...this.#scorers }
  }

  /** The editor of its agents. Throws where it has none. */
  getEditor(): HeedEditor {
    if (this.#editor) return this.#editor
    throw new HeedError('edit_locked', 'This Heed has no editor. Pass one: new Heed({ editor: new HeedEditor() }).')
  }

  /** The agent under this key of `agents`; one that was created with `new Agent({ heed })` has its id as key. */
  getAgent<Key extends keyof Agents & string>(key: Key): Agents[Key] {
    return ofKey('agent', this.listAgents(), key)
  }

  getAgentById(id: string): Agent {
    const agent = Object.values(this.listAgents()).find((candidate) => candidate.id === id)
    if (!agent) throw new HeedError('unknown_agent', `There is no agent with the id '${String(id)}'.`, { details: { agentId: id } })
    return agent
  }

  listAgents(): Agents {
    return { ...Object.fromEntries(this.#joined), ...this.#agents }
  }

  /** @internal The agent with this id, else the one under this key. */
  findAgent(name: string): Agent | undefined {
    for (const agent of Object.values<Agent>(this.#agents)) if (agent.id === name) return agent
    return this.#joined.get(name) ?? (Object.hasOwn(this.#agents, name) ? this.#agents[name] : undefined)
  }

  /**
   * @internal Registers an agent that was created with `new Agent({ heed })`, in place of an earlier one of the same id that was created
   * so too.
   */
  admit(agent: Agent): void {
    const { id } = agent
    const taken = Object.hasOwn(this.#agents, id) || Object.values(this.#agents).some((other) => other.id === id)
    if (taken)
      throw new HeedError('invalid_agent', `This Heed has an agent '${id}' already. Give one of them another id.`, {
        details: { agentId: id },
      })
    this.#joined.set(id, agent)
    if (!this.#begun || this.closed || agent.storageDependsOnRequest) return
    agent.threads().register(agent)
    agent.threads().open().catch((error: unknown) => this.reportFailedStart(error))
  }

  /** @internal */
  get closed(): boolean {
    return this.sites.closed
  }

  /**
   * Opens the storages and continues what an earlier process left: unfinished runs go on, pending signals wake their threads, and what is
   * due is sent. The first use of a thread, a memory, an inbox, a schedule or a handler does the same in the background, and so does a call
   * without a thread where a storage is given; `start()` resolves when it is done. A `memory` that is a function is called with an empty
   * context and with each of `requestContexts`; threads in other storages continue when a request resolves their storage.
   */
  async start(options: { requestContexts?: readonly RequestContext[] } = {}): Promise<void> {
    checkNames('start()', options, ['requestContexts'])
    const sites = await this.#registerAgents(options.requestContexts)
    await this.begin()
    await Promise.all(sites.map(({ threads }) => threads.sweep()))
    await Promise.all(sites.flatMap(({ inbox, schedules, watches }) => [inbox.sweep(), schedules.sweep(), watches.sweep()]))
  }

  /**
   * @internal Registers all agents, opens their storages, whose sweeps and dispatches begin with that, and starts the sources. Once; again
   * if it failed.
   */
  begin(): Promise<void> {
    // A storage that opens calls this too.
    this.#begun ??= Promise.resolve().then(() => this.#begin()).catch((error: unknown) => {
      this.#begun = undefined
      throw error
    })
    return this.#begun
  }

  async #begin(): Promise<void> {
    if (this.closed) throw new HeedError('closed', 'This Heed was closed. Ask the process that runs now.')
    await Promise.all(this.#registerAtOwnStorages().map((threads) => threads.open()))
    await this.#reconcile()
    this.#reported = undefined
    this.sources.start()
  }

  /** Makes the schedules of workflows those of the code. Once; again if it failed. */
  #reconcile(): Promise<void> {
    this.#reconciled ??= Promise.all(Object.values<HeedWorkflow>(this.#workflows).map(async (workflow) => workflow.reconcile?.())).then(
      () => {},
      (error: unknown) => {
        this.#reconciled = undefined
        throw error
      },
    )
    return this.#reconciled
  }

  /** The first use of any storage begins the work of all agents. A storage that is opened again later has the same agents. */
  #onStorageOpen(): void {
    if (this.closed) return
    this.#registerAtOwnStorages()
    if (!this.#begun) this.begin().catch((error: unknown) => this.reportFailedStart(error))
  }

  /**
   * @internal A call that needs no storage begins the work of all agents too, unless that would create the default file: a program that
   * gave no storage and uses no thread stores nothing.
   */
  use(): void {
    if (this.#begun || this.closed) return
    const agents = Object.values<Agent>(this.listAgents())
    if (agents.some((agent) => !agent.storageDependsOnRequest && agent.site().isDefault)) return
    this.begin().catch((error: unknown) => this.reportFailedStart(error))
  }

  /** @internal Logs why a start in the background failed, once. The next use, or `start()`, tries again. */
  reportFailedStart(failure: unknown): void {
    const error = describe(failure)
    if (this.closed || error === this.#reported) return
    this.#reported = error
    this.logger.error('a storage could not be opened: its threads, notifications and schedules are not processed', { error })
  }

  /**
   * Does what is due now and returns how much that was, for processes that don't stay: when it resolves, the runs that it started or
   * continued have ended, are suspended, or go on after `timeoutMs`. `limit` applies to threads, schedules, notifications and watches each.
   */
  async tick(options: TickOptions = {}): Promise<TickResult> {
    checkNames('tick()', options, ['limit', 'timeoutMs', 'requestContexts'])
    const { limit = 100, timeoutMs } = options
    checkWhole('limit', limit, 1)
    if (timeoutMs !== undefined) checkWhole('timeoutMs', timeoutMs)
    const sites = await this.#registerAgents(options.requestContexts)
    await this.#reconcile()
    const before = sites.map((site) => new Set(site.threads.threadIds()))
    const threads = await Promise.all(sites.map((site) => site.threads.sweep(limit)))
    const schedules = await Promise.all(sites.map((site) => site.schedules.sweep(limit)))
    const notifications = await Promise.all(sites.map((site) => site.inbox.sweep(limit)))
    const watches = await Promise.all(sites.map((site) => site.watches.settle(limit)))
    const scores: number[] = []
    await withTimeout(this.clock, timeoutMs, Promise.all(sites.map(async (site, index) => {
      const { threads: runtime, inbox, scoring, watches: waiting } = site
      await inbox.whenDecided()
      await runtime.whenIdle(before[index] ?? new Set(), async (threadId) => {
        notifications.push(await inbox.deliverToIdle(threadId))
      })
      watches.push(await waiting.settleReplies(limit))
      await runtime.titles.whenIdle()
      scores.push(await scoring.sweep(limit))
    })))
    const pruned = await Promise.all(sites.map((site) => site.pruner.sweep(limit)))
    return {
      threads: sum(threads), notifications: sum(notifications), schedules: sum(schedules), watches: sum(watches), scores: sum(scores),
      pruned: sum(pruned),
    }
  }

  /** Scores of runs, the newest first; of the storage of the agent that is named, else of the Heed's own. Up to `limit`; 100 by default. */
  listScores(query: ScoreListQuery = {}): Promise<ScorePage> {
    return listScores(this, query)
  }

  /** How many scores there are. */
  countScores(query: Omit<ScoreListQuery, 'before' | 'limit' | 'offset'> = {}): Promise<number> {
    return countScores(this, query)
  }

  /** Stores the score that a person or another program gives a run on a thread, beside those of scorers. */
  saveScore(score: ScoreInput): Promise<ScoreRow> {
    return saveScore(this, score)
  }

  /** Has failed scores made again. Returns how many; up to `limit`, 100 by default, the newest first. */
  retryScores(query: ScoreRetry = {}): Promise<number> {
    return retryScores(this, query)
  }

  /** Has runs that ended before scored, as new ones are: in the background, each once. `runs` were selected, `added` had no score yet. */
  backfillScores(backfill: ScoreBackfill): Promise<{ runs: number; added: number }> {
    return backfillScores(this, backfill)
  }

  /** The sites of all agents, with the agents registered there: a sweep continues threads of registered agents only. */
  async #registerAgents(requestContexts: readonly RequestContext[] = []): Promise<Site[]> {
    if (!Array.isArray(requestContexts)) throw refused('requestContexts', 'a list of RequestContext')
    for (const workflow of Object.values<HeedWorkflow>(this.#workflows)) workflow.register()
    for (const agent of Object.values(this.listAgents())) {
      agent.threads().register(agent)
      if (agent.storageDependsOnRequest)
        for (const context of [undefined, ...requestContexts]) await this.#registerForRequest(agent, context)
    }
    return this.sites.all()
  }

  /** Registers the agents whose storage no request decides. Returns the runtimes of these storages. */
  #registerAtOwnStorages(): ThreadRuntime[] {
    const found = new Set<ThreadRuntime>()
    for (const agent of Object.values(this.listAgents())) {
      if (agent.storageDependsOnRequest) continue
      const threads = agent.threads()
      threads.register(agent)
      found.add(threads)
    }
    for (const workflow of Object.values<HeedWorkflow>(this.#workflows)) {
      const threads = workflow.register()
      if (threads) found.add(threads)
    }
    return [...found]
  }

  /** A `memory` function that fails here is called again by the next request. */
  async #registerForRequest(agent: Agent, requestContext: RequestContext | undefined): Promise<void> {
    try {
      const here = await agent.resolveStorage(requestContext)
      here.threads().register(here)
    } catch (error) {
      this.logger.info('the memory of an agent could not be resolved for a request; its threads are continued when a request resolves it', {
        agentId: agent.id,
        error: describe(error),
      })
    }
  }

  /**
   * Stops running and releases every thread to other processes. The process can exit afterwards. By default runs are cut at once, and
   * repeat what was not stored; with `drainMs` they go on to their next boundary first, for at most so long.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkNames('close()', options, ['drainMs'])
    const { drainMs = 0 } = options
    checkWhole('drainMs', drainMs)
    if (drainMs > 0) await this.drain(drainMs)
    try {
      const onTimeout = () => this.logger.warn('events of sources are delivered by the next poll')
      await withTimeout(this.clock, sourcesMs, this.sources.stop(), onTimeout)
    } finally {
      await this.sites.close()
    }
  }

  /**
   * @internal Claims no thread any more, and lets the runs go on to their next boundary: for at most so long, and until the signal aborts.
   * What is sent meanwhile is stored, for other processes.
   */
  async drain(ms: number, signal?: AbortSignal): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const timer = this.clock.after(ms, resolve)
    signal?.addEventListener('abort', () => resolve(), { once: true })
    await this.sites.drain(over)
    timer.cancel()
  }
}

/** Throws where there is none, with the known keys. */
function ofKey<All extends object, Key extends keyof All & string>(kind: 'agent' | 'scorer' | 'workflow', all: All, key: Key): All[Key] {
  if (Object.hasOwn(all, key)) return all[key]
  const known = Object.keys(all).join(', ') || 'none'
  throw new HeedError(`unknown_${kind}`, `There is no ${kind} '${String(key)}'. Known: ${known}.`, { details: { [kind]: key } })
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
