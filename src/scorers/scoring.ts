import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { restoreOptions } from '../thread/send/stored-options.ts'
import type { BackgroundService } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { Dispatcher, type DispatchSettings } from '../schedule/dispatcher.ts'
import type { ScoreQuery, ScoreRow, ScoreSettlement } from '../store/contract/scores.ts'
import { Operation } from '../tracing/operation.ts'
import { telemetryFor } from '../tracing/telemetry.ts'
import type { ScorerLike, ScorerResult, ScorerRun } from './contract.ts'
import { trajectoryOf } from './messages.ts'
import { readStoredRun, type StoredRun } from './scored-run.ts'

type ReadRun = (row: ScoreRow) => Promise<StoredRun | undefined>

/** How many runs a process scores at a time: judges must not take the connections of the agents. */
const atOnce = 4
/** For how long a scorer may work. A claim lasts longer, so that no other process begins the same work. */
const longestMs = 240_000
const scoreClaimMs = 300_000
const firstRetryMs = 1_000
const longestRetryMs = 300_000
const maxAttempts = 8
/** Scoring begins so long after a run: the turn that follows is not slowed down, and runs that end together are scored together. */
const quietMs = 250

/** Scores finished runs, after them and beside them. Any process of the agent may score a run; each score is stored once. */
export class Scoring implements BackgroundService {
  readonly #runtime: ThreadRuntime
  readonly #dispatcher: Dispatcher
  readonly #closing = new AbortController()
  /** The runs of the claim before, where another one follows it. */
  #justRead: ReadonlyMap<string, Promise<StoredRun | undefined>> = new Map()

  constructor(runtime: ThreadRuntime, settings: DispatchSettings) {
    this.#runtime = runtime
    this.#dispatcher = new Dispatcher(runtime, { ...settings, batchSize: atOnce, cron: undefined }, {
      dispatch: async (limit) => {
        const taken = await this.#dispatch(limit)
        return { taken, done: taken }
      },
      nextDue: async () => runtime.store.nextScoreDue(this.#agentIds()),
    })
  }

  /** A run that is to be scored has ended. */
  wake(): void {
    this.#dispatcher.wakeAt(this.#runtime.clock.now() + quietMs)
  }

  list(query: ScoreQuery): Promise<{ scores: ScoreRow[]; more: boolean }> {
    return this.#runtime.store.listScores(query)
  }

  // For the runtime

  poll(): void {
    if (this.#agentIds().length === 0) return
    this.#dispatcher.track(this.#runtime.open().then(() => this.#dispatcher.scheduleNext()), 'the read of due scores failed')
  }

  async sweep(limit?: number): Promise<number> {
    if (this.#agentIds().length === 0) return 0
    if (limit === undefined) return this.#dispatcher.dispatchAll()
    let scored = 0
    while (scored < limit) {
      const done = await this.#dispatcher.dispatchOnce(Math.min(limit - scored, atOnce))
      if (done === 0) break
      scored += done
    }
    return scored
  }

  async close(): Promise<void> {
    this.#closing.abort(new HeedError('closed', 'The process closes.'))
    await this.#dispatcher.close()
  }

  async #dispatch(limit: number): Promise<number> {
    const { store, clock } = this.#runtime
    const now = clock.now()
    const due = await store.claimScores({ now, until: now + scoreClaimMs, limit, agentIds: this.#agentIds() })
    // The scorers of a run read it once.
    const found = new Map<string, Promise<StoredRun | undefined>>()
    const read = (row: ScoreRow) => {
      const reading = found.get(row.runId) ?? this.#justRead.get(row.runId) ?? readStoredRun(store, row)
      found.set(row.runId, reading)
      return reading
    }
    await Promise.all(due.map((row) => this.#settle(row, read)))
    // The next claim follows at once, and may have other scorers of the same run.
    this.#justRead = due.length === limit ? found : new Map()
    return due.length
  }

  /** Scores a run and stores what became of it. A process that closes leaves its claims, which expire. */
  async #settle(row: ScoreRow, read: ReadRun): Promise<void> {
    const { store, clock, logger } = this.#runtime
    let settlement: ScoreSettlement
    try {
      settlement = settlementOf(await this.#traced(row, () => this.#score(row, read)))
    } catch (error) {
      if (this.#closing.signal.aborted) return
      const { scorerId, runId, attempts } = row
      logger.warn('a run could not be scored', { scorerId, runId, attempts, error: describe(error) })
      const retryAt = attempts < maxAttempts ? clock.now() + Math.min(longestRetryMs, firstRetryMs * 4 ** (attempts - 1)) : undefined
      settlement = { state: 'failed', error: errorOf(error), ...(retryAt === undefined ? {} : { retryAt }) }
    }
    await store.settleScore(row, settlement, clock.now())
  }

  /** In a span of its own: the run that is scored has ended. */
  async #traced(row: ScoreRow, score: () => Promise<ScorerResult>): Promise<ScorerResult> {
    const { tracing } = this.#runtime
    const telemetry = telemetryFor(tracing)
    if (!telemetry) return score()
    const { scorerId, version, runId, threadId, agentId, attempts } = row
    const operation = new Operation(telemetry, {
      name: `evaluate ${scorerId}`,
      parent: undefined,
      options: tracing || {},
      attributes: {
        'gen_ai.operation.name': 'evaluate', 'gen_ai.evaluation.name': scorerId, 'gen_ai.agent.id': agentId,
        'gen_ai.conversation.id': threadId, 'heed.run.id': runId, 'heed.scorer.version': version, 'heed.scorer.attempt': attempts,
      },
    })
    try {
      const result = await operation.within(score)
      operation.set(result.notScorable ? { 'gen_ai.evaluation.score.label': 'not_scorable' }
        : { 'gen_ai.evaluation.score.value': result.score })
      return result
    } catch (error) {
      operation.fail(error)
      throw error
    } finally {
      operation.end()
    }
  }

  async #score(row: ScoreRow, read: ReadRun): Promise<ScorerResult> {
    const found = await read(row)
    if (!found) return { runId: row.runId, notScorable: { step: 'preprocess', reason: 'The rows of the run were deleted.' } }
    const { options } = restoreOptions(found.run.options, undefined)
    const scorer = await this.#scorerOf(row, options)
    const { clock } = this.#runtime
    const late = new AbortController()
    const timer = clock.after(longestMs, () => late.abort(new HeedError('scorer_failed', `No score after ${longestMs} ms.`)))
    const abortSignal = AbortSignal.any([late.signal, this.#closing.signal])
    // A copy: a scorer that changes what it gets changes nothing for the others.
    const scored = structuredClone(found.scored)
    try {
      const output = scorer.type === 'trajectory' ? trajectoryOf(scored.output) : scored.output
      const requestContext = options.requestContext?.toJSON() ?? {}
      return await scorer.run({ ...scored, output, requestContext, abortSignal } as ScorerRun<never, never>)
    } finally {
      timer.cancel()
    }
  }

  /** The agents of this process that have scorers. Without one, nothing is read. */
  #agentIds(): string[] {
    return this.#runtime.agentIds().filter((id) => this.#runtime.agent(id).scorers !== undefined)
  }

  async #scorerOf({ agentId, scorerId, version }: ScoreRow, options: AgentExecutionOptions): Promise<ScorerLike> {
    const entries = Object.values((await this.#runtime.agent(agentId).scorers?.(options)) ?? {})
    const scorer = entries.find((entry) => entry?.scorer.id === scorerId && entry.scorer.version === version)?.scorer
    if (scorer) return scorer
    throw new HeedError('scorer_failed', `Agent '${agentId}' has no scorer '${scorerId}' of version '${version}' in this process.`)
  }
}

function settlementOf(result: ScorerResult): ScoreSettlement {
  if (result.notScorable) {
    const { reason } = result.notScorable
    return { state: 'not_scorable', ...(reason === undefined ? {} : { reason }) }
  }
  const { score, reason, usage } = result
  return { state: 'scored', score, ...(reason === undefined ? {} : { reason }), ...(usage ? { usage: { ...usage } } : {}) }
}

function errorOf(error: unknown): JSONObject {
  return { code: isHeedError(error) ? error.code : 'scorer_failed', message: describe(error) }
}
