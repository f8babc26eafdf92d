import type { Agent } from '../agent/agent.ts'
import { checkNames, checkWhole, refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { isObject } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { Bus } from '../bus/contract.ts'
import type { Channel } from '../channel/channel.ts'
import type { HeedEditor } from '../editor/editor.ts'
import type { NotificationsConfig } from '../inbox/options.ts'
import type { CedarPolicies } from '../policy/policies.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ScorerLike } from '../scorers/contract.ts'
import type { SignalProvider } from '../sources/source.ts'
import type { Storage } from '../store/contract/storage.ts'
import type { RunLimits } from '../thread/runtime/run-slots.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { checkTracing, type TracingOptions } from '../tracing/options.ts'
import { checkPolicies } from './policies.ts'
import type { Sites } from './site.ts'

/** A workflow as a Heed knows it: see `createWorkflow` of `heed/workflows`. */
export interface HeedWorkflow {
  readonly id: string
  /** @internal */
  join(heed: { readonly sites: Sites }): void
  /** @internal */
  register(): ThreadRuntime | undefined
  /** @internal Makes the schedules of the store those of the code. */
  reconcile?(): Promise<void>
  /** @internal The scorers of its steps. */
  stepScorers?(): readonly ScorerLike[]
}

/** The parts of a Heed. */
export interface HeedConfig<
  Agents extends Record<string, Agent> = Record<string, Agent>,
  Workflows extends Record<string, HeedWorkflow> = Record<string, HeedWorkflow>,
  Scorers extends Record<string, ScorerLike> = Record<string, ScorerLike>,
> {
  agents?: Agents
  /** Workflows whose runs are in the storage: made with `createWorkflow` of `heed/workflows`. */
  workflows?: Workflows
  /** Scorers that calls and `backfillScores()` may name by their ids: made with `createScorer` of `heed/scorers`. */
  scorers?: Scorers
  /** Stores the threads. Defaults to the file `./heed.db`. */
  storage?: Storage
  /** Connects the processes on a storage, each storage separately. Defaults to the bus of the storage. */
  bus?: Bus
  /** How many runs this process has at the same time, and how many threads may wait for one. */
  limits?: RunLimits
  notifications?: NotificationsConfig
  /** Channels whose messages agents wait for. */
  channels?: readonly Channel[]
  /**
   * Decides which messages agents receive, which tools they run by themselves, and what requests to the server may do: `CedarPolicies` of
   * `heed/policy`. The tenant is the resource whose message, run or thread it is.
   */
  policies?: Pick<CedarPolicies, 'authorize'>
  /** Lets people change the instructions and the tools of agents without a deployment: `new HeedEditor()` of `heed/editor`. */
  editor?: HeedEditor
  /** Sources of notifications: webhooks, GitHub, or your own. */
  sources?: readonly SignalProvider[]
  /** Receives reports of background work, without secrets. Defaults to warnings and errors on standard error. */
  logger?: Logger
  /** What traces contain besides names, times and counts; `false`: no traces. Traces need a registered OpenTelemetry SDK. */
  tracing?: TracingOptions | false
  clock?: Clock
}

/** How much `tick()` does at most. */
export interface TickOptions {
  /** How many threads, schedules, notifications and watches are handled at most, each. Defaults to 100. */
  limit?: number
  /** How long to wait for the runs that it started or continued. By default, until they are over. */
  timeoutMs?: number
  requestContexts?: readonly RequestContext[]
}

/** How `close()` ends runs. */
export interface CloseOptions {
  /**
   * How long the runs may go on to their next boundary, which is stored; those that a caller of this process waits for, to their end.
   * Meanwhile this process begins no run, and sends are stored for other processes. Defaults to 0.
   */
  drainMs?: number
}

/** How much was done. */
export interface TickResult {
  threads: number
  notifications: number
  schedules: number
  /** Messages annotated, judged and answered, and results sent. */
  watches: number
  /** Runs scored. */
  scores: number
  pruned: number
}

const names = [
  'agents', 'workflows', 'scorers', 'storage', 'bus', 'limits', 'notifications', 'channels', 'policies', 'editor', 'sources', 'logger',
  'tracing', 'clock',
]

/** Rejects an option that does not exist, and a part that is something else. */
export function checkConfig(config: HeedConfig): void {
  checkNames('new Heed()', config, names)
  checkParts(config)
  checkTracing(config.tracing)
  checkLimits(config.limits)
  if (config.policies !== undefined) checkPolicies(config.policies)
}

/** What each part of a Heed must be: the methods that it must have, or a kind. */
const parts: ReadonlyArray<readonly [part: keyof HeedConfig, methods: readonly string[], wanted: string]> = [
  ['storage', ['getStore'], "a storage, such as new LibSQLStore({ url: 'file:./heed.db' })"],
  ['bus', ['connect'], 'a bus, such as new RedisBus({ url })'],
  ['logger', ['debug', 'info', 'warn', 'error'], 'an object with the methods debug, info, warn and error'],
  ['clock', ['now', 'after'], 'a clock, such as virtualClock() of heed/testing'],
]

function checkParts(config: HeedConfig): void {
  for (const [part, methods, wanted] of parts) {
    const value: unknown = config[part]
    const fits = isObject(value) && methods.every((method) => typeof value[method] === 'function')
    if (value !== undefined && !fits) throw refused(part, wanted)
  }
  if (config.editor !== undefined && typeof (config.editor as Partial<HeedEditor>).overridesFor !== 'function')
    throw refused('editor', 'an editor of heed/editor: new HeedEditor()')
  for (const part of ['agents', 'workflows', 'scorers'] as const)
    if (config[part] !== undefined && !isObject(config[part])) throw refused(part, `an object of ${part} by their names`)
  for (const part of ['sources', 'channels'] as const)
    if (config[part] !== undefined && !Array.isArray(config[part])) throw refused(part, `a list of ${part}`)
}

function checkLimits(limits: unknown): void {
  if (limits === undefined) return
  const names = ['runs', 'waitingRuns']
  checkNames('limits', limits, names)
  for (const [name, value] of Object.entries(limits as object)) if (value !== undefined) checkWhole(`limits.${name}`, value, 1)
}
