import { setImmediate } from 'node:timers/promises'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import { untilAborted } from '../base/promises.ts'
import type { Message } from '../message/message.ts'
import { restoreOptions } from '../thread/send/stored-options.ts'
import type { BackgroundService } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { Dispatcher, type Dispatched, type DispatchSettings } from '../schedule/dispatcher.ts'
import type { ScoreRow, ScoreSettlement } from '../store/contract/scores.ts'
import { Operation } from '../tracing/operation.ts'
import { telemetryFor } from '../tracing/telemetry.ts'
import { checkedResult } from './checked-result.ts'
import type { AgentScorers, ScorerLike, ScorerResult, ScorerRun } from './contract.ts'
import { trajectoryOf } from './messages.ts'
import { copyForScorer, readStoredRun, readStoredStep } from './scored-run.ts'

/** A run, or a step of a workflow, with what its scorers are found by. */
interface ReadRun {
  /** A copy of its own for each scorer: one that changes what it gets changes nothing for the others. */
  copy(): ScorerRun
  requestContext: Readonly<Record<string, unknown>>
  scorers: AgentScorers
}

/** How many scorers that take their time work at once: judges must not take the connections of the agents. */
const atOnce = 4
/** How many scores are claimed at once while scorers answer at once, as those in code do: they share their transactions. */
const mostClaimed = 32
/** For how long a scorer may work. A claim lasts longer, so that no other process begins the same work. */
const longestMs = 240_000
const scoreClaimMs = 300_000
const firstRetryMs = 1_000
const longestRetryMs = 300_000
const maxAttempts = 8
/** Scoring begins so long after a run: the turn that follows is not slowed down, and runs that end together are scored together. */
const quietMs = 1_000

/** Scores finished runs, after them and beside them. Any process of the agent may score a run; each score is stored once. */
export class Scoring implements BackgroundService {
  readonly #runtime: ThreadRuntime
  readonly #dispatcher: Dispatcher
  /** The scorers of the Heed, by their ids: calls may name them. */
  readonly #registered: ReadonlyMap<string, ScorerLike>
  /** What ends the scorers that work. */
  readonly #working = new Set<AbortController>()
  #closed = false
  /** How many scores the next claim takes. */
  #claimed = mostClaimed
  /** The run that was scored last: the next claim may have other scorers of it. */
  #justRead: { about: string; found: ReadRun | undefined } | undefined

  constructor(runtime: ThreadRuntime, settings: DispatchSettings, registered: ReadonlyMap<string, ScorerLike>) {
    this.#runtime = runtime
    this.#registered = registered
    this.#dispatcher = new Dispatcher(runtime, { ...settings, batchSize: mostClaimed, cron: undefined }, {
      dispatch: (limit) => this.#dispatch(limit),
      nextDue: async () => runtime.store.scores.nextDue(this.#agentIds()),
    })
  }

  /** A run that is to be scored has ended. */
  wake(): void {
    this.#dispatcher.wakeAt(this.#runtime.clock.now() + quietMs)
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
      const done = await this.#dispatcher.dispatchOnce(Math.min(limit - scored, mostClaimed))
      if (done === 0) break
      scored += done
    }
    return scored
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const stop of this.#working) stop.abort(closed())
    await this.#dispatcher.close()
  }

  /**
   * Scores what is due, one after the other: between two scorers the process does its other work. What a scorer in code gave is stored with
   * that of others, in one transaction. One that takes its time, such as a judge, goes on beside the others.
   */
  async #dispatch(most: number): Promise<Dispatched> {
    const { store, clock } = this.#runtime
    const limit = Math.min(most, this.#claimed)
    const now = clock.now()
    const due = await store.scores.claim({ now, until: now + scoreClaimMs, limit, agentIds: this.#agentIds() })
    const quick: Settled[] = []
    const slow = new Set<Promise<void>>()
    for (const row of due) {
      if (slow.size >= atOnce) {
        await this.#store(quick.splice(0))
        await Promise.race(slow)
      }
      if (this.#closed) break
      // It would end after its claim.
      const isLate = clock.now() > now + scoreClaimMs - longestMs
      const scoring = isLate ? Promise.resolve(notBegun(row, clock.now())) : this.#settle(row, await this.#read(row))
      const settled = await Promise.race([scoring, setImmediate(pending)])
      if (settled !== pending) quick.push(...settled)
      else {
        const later: Promise<void> = scoring.then((given) => this.#store(given)).finally(() => slow.delete(later))
        slow.add(later)
      }
    }
    this.#claimed = slow.size > 0 ? atOnce : mostClaimed
    await Promise.all([this.#store(quick), ...slow])
    if (due.length < limit) this.#justRead = undefined
    return { taken: due.length === limit ? most : due.length, done: due.length }
  }

  /** Writes that come together share a transaction. */
  async #store(settled: readonly Settled[]): Promise<void> {
    const { store, clock } = this.#runtime
    await Promise.all(settled.map(({ row, settlement }) => store.scores.settle(row, settlement, clock.now())))
  }

  /** The scorers of a run read it once. */
  async #read(row: ScoreRow): Promise<() => Promise<ReadRun | undefined>> {
    const about = `${row.runId} ${row.stepPath ?? ''}`
    if (this.#justRead?.about === about) {
      const { found } = this.#justRead
      return () => Promise.resolve(found)
    }
    try {
      const found = await (row.stepPath === undefined ? this.#readRun(row) : this.#readStep(row, row.stepPath))
      this.#justRead = { about, found }
      return () => Promise.resolve(found)
    } catch (error) {
      return () => Promise.reject(error)
    }
  }

  async #readRun(row: ScoreRow): Promise<ReadRun | undefined> {
    const stored = await readStoredRun(this.#runtime.store, row)
    if (!stored) return undefined
    const { options } = restoreOptions(stored.run.options, undefined)
    const scorers = (await this.#runtime.agent(row.agentId).scorers?.(options)) ?? {}
    return { copy: () => copyForScorer(stored), requestContext: options.requestContext?.toJSON() ?? {}, scorers }
  }

  async #readStep(row: ScoreRow, path: string): Promise<ReadRun | undefined> {
    const stored = await readStoredStep(this.#runtime.store, row, path)
    if (!stored) return undefined
    const { requestContext, ...step } = stored
    return { copy: () => structuredClone(step), requestContext, scorers: this.#runtime.agent(row.agentId).stepScorers?.(path) ?? {} }
  }

  /** Scores a run. A process that closes leaves its claims, which expire. */
  async #settle(row: ScoreRow, read: () => Promise<ReadRun | undefined>): Promise<Settled[]> {
    const { clock, logger } = this.#runtime
    try {
      return [{ row, settlement: settlementOf(await this.#traced(row, async () => this.#score(row, await read()))) }]
    } catch (error) {
      if (this.#closed) return []
      const { scorerId, runId, attempts, retries = 0 } = row
      logger.warn('a run could not be scored', { scorerId, runId, attempts, error: describe(error) })
      const delay = Math.min(longestRetryMs, firstRetryMs * 4 ** ((attempts - 1) % maxAttempts))
      const retryAt = attempts < maxAttempts * (1 + retries) ? clock.now() + delay : undefined
      return [{ row, settlement: { state: 'failed', error: errorOf(error), ...(retryAt === undefined ? {} : { retryAt }) } }]
    }
  }

  /** In a span of its own, linked to that of the run, which has ended. */
  async #traced(row: ScoreRow, score: () => Promise<ScorerResult>): Promise<ScorerResult> {
    const { tracing } = this.#runtime
    const telemetry = telemetryFor(tracing)
    if (!telemetry) return score()
    const { scorerId, version, runId, threadId, agentId, attempts, traceId, spanId } = row
    const links = traceId !== undefined && spanId !== undefined ? [{ context: { traceId, spanId, traceFlags: 1, isRemote: true } }] : []
    const operation = new Operation(telemetry, {
      name: `evaluate ${scorerId}`,
      parent: undefined,
      links,
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

  async #score(row: ScoreRow, found: ReadRun | undefined): Promise<ScorerResult> {
    if (!found) return { runId: row.runId, notScorable: { step: 'preprocess', reason: 'What the run read or answered is not stored.' } }
    const scorer = this.#scorerOf(row, found.scorers)
    const scored = found.copy()
    const output = scorer.type === 'trajectory' ? trajectoryOf(scored.output as Message[]) : scored.output
    const { requestContext } = found
    const stop = new AbortController()
    this.#working.add(stop)
    const late = () => stop.abort(new HeedError('scorer_failed', `No score after ${longestMs} ms.`))
    const timer = this.#runtime.clock.after(longestMs, late)
    try {
      const run = { ...scored, output, requestContext, abortSignal: stop.signal } as ScorerRun<never, never>
      // A scorer that never ends must not end the scoring of all others.
      return checkedResult(scorer.id, await untilAborted(scorer.run(run), stop.signal))
    } finally {
      timer.cancel()
      this.#working.delete(stop)
    }
  }

  #scorerOf({ agentId, scorerId, version }: ScoreRow, scorers: AgentScorers): ScorerLike {
    const known = [...Object.values(scorers).flatMap((entry) => entry?.scorer ?? []), ...this.#registered.values()]
    const scorer = known.find((one) => one.id === scorerId && one.version === version)
    if (scorer) return scorer
    throw new HeedError('scorer_failed', `Agent '${agentId}' has no scorer '${scorerId}' of version '${version}' in this process.`)
  }

  /** The agents of this process whose runs may have scores to make. Without one, nothing is read. */
  #agentIds(): string[] {
    const ids = this.#runtime.agentIds()
    return this.#registered.size > 0 ? ids : ids.filter((id) => this.#runtime.agent(id).scorers !== undefined)
  }
}

interface Settled {
  row: ScoreRow
  settlement: ScoreSettlement
}

const pending: unique symbol = Symbol('pending')

function closed(): HeedError {
  return new HeedError('closed', 'The process closes.')
}

/** Scorers before it took too long: it is due again at once, for whichever process is free. */
function notBegun(row: ScoreRow, now: number): Settled[] {
  const error = { code: 'scorer_failed', message: 'Not begun: other scorers took too long.' }
  return [{ row, settlement: { state: 'failed', error, retryAt: now } }]
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
