import type { JSONObject, JSONValue } from '../../../base/json.ts'
import type { ProcessRow, PromptHead, RunDecision, RunDetails, Scope, StepRow, StoredPrompt, Takeover } from '../../contract/threads.ts'
import { isCut } from '../../core/begin.ts'
import { scopedThread } from '../../core/lease.ts'
import {
  messageRow, runRow, type RowRecord, type RunRecord, type StepRecord, type TakeoverRecord, type ThreadRecord,
} from '../../core/records.ts'
import type { StepTable } from '../../core/tables.ts'
import type { StoreClock } from '../driver.ts'
import { noLimit, rowColumns, runColumns } from '../sql.ts'
import type { Statements } from '../statements.ts'
import type { SqlTables } from '../tables.ts'
import { stepSql } from './sql.ts'

/** How long a process relies on a head that it stored, without storing it again. Unused heads are removed after a day. */
export const headKnownMs = 3_600_000

export class SqlSteps implements StepTable {
  readonly #db: Statements
  readonly #clock: StoreClock

  constructor(statements: Statements, clock: StoreClock) {
    this.#db = statements
    this.#clock = clock
  }

  /** The record of the thread is written by its caller: the commit of a step always changes it. */
  add(thread: ThreadRecord, step: StepRecord): void {
    if (thread.head !== step.head) this.#db.execute(stepSql.addUse, thread.key, step.head, step.seq)
    thread.head = step.head
    this.#db.execute(
      stepSql.add, thread.key, step.seq, step.step, step.epoch, step.runId, step.owner, step.startedAt, step.finishedAt, step.provider,
      step.modelId, step.specification, step.finish, step.usage, step.head, step.windowFrom, step.windowCut, step.rowCount, step.messages,
      step.hash, step.altered,
    )
  }

  putHead({ hash, text, tools }: PromptHead): void {
    const now = this.#clock.now()
    const fresh = now - headKnownMs / 2
    if (text !== undefined) this.#db.execute(stepSql.putHead, hash, tools.hash, now, text, fresh)
    if (tools.text !== undefined) this.#db.execute(stepSql.putTools, tools.hash, now, tools.text, fresh)
  }

  addTakeover(thread: ThreadRecord, { epoch, runId, step, lost, owner, at }: TakeoverRecord): void {
    this.#db.execute(stepSql.addTakeover, thread.key, epoch, runId, step, lost, owner, at)
  }

  /** Removes steps and takeovers from before this time, so many of each; returns how many. */
  removeBefore(thread: ThreadRecord, before: number, limit: number): number {
    return this.#db.run(stepSql.removeSteps, thread.key, before, limit) + this.#db.run(stepSql.removeTakeovers, thread.key, before, limit)
  }
}

/** The runs of the page and the one after it in time, whose first row ends the rows of the run before it. */
const pageOfRuns = `SELECT ${runColumns} FROM heed_runs r WHERE r.thread = ? ORDER BY r.key DESC LIMIT ? OFFSET ?`

export function listRunDetails(
  statements: Statements, tables: SqlTables, scope: Scope, { limit, offset = 0 }: { limit: number; offset?: number },
): RunDetails[] {
  const thread = scopedThread(tables, scope)
  const later = offset === 0 ? 0 : 1
  const found = statements.all<RunRecord>(pageOfRuns, thread.key, limit + later, offset - later)
  const runs = found.slice(later)
  const oldest = runs.at(-1)
  if (!oldest) return []
  const end = later === 1 ? (found[0]?.firstSeq ?? noLimit) : noLimit
  const steps = statements.all<StepRecord>(stepSql.between, thread.key, oldest.firstSeq, end)
  const takeovers = statements.all<TakeoverRecord>(stepSql.takeovers, thread.key, 0)
  return runs.map((run) => ({
    ...runRow(thread, run),
    steps: steps.filter(({ runId }) => runId === run.runId).map(stepRow),
    takeovers: takeovers.filter(({ runId }) => runId === run.runId).map(takeoverRow),
    decisions: run.decisions === null ? [] : (JSON.parse(run.decisions) as RunDecision[]),
  }))
}

function stepRow(record: StepRecord): StepRow {
  const { seq: _, finish, usage, altered, windowFrom, windowCut, rowCount, provider, modelId, specification, ...step } = record
  const row: StepRow = { ...step, window: { from: windowFrom, cut: windowCut }, rows: rowCount }
  if (provider !== null) row.provider = provider
  if (modelId !== null) row.modelId = modelId
  if (specification !== null) row.specification = specification
  if (finish !== null) row.finishReason = finish
  if (usage !== null) row.usage = JSON.parse(usage) as JSONObject
  if (altered !== null) row.altered = JSON.parse(altered) as JSONValue
  return row
}

function takeoverRow({ epoch, runId, step, lost, owner, at }: TakeoverRecord): Takeover {
  return { epoch, runId, step, ...(lost !== null && { from: lost }), to: owner, at }
}

export function readPrompt(
  statements: Statements, tables: SqlTables, scope: Scope, runId: string, step: number,
): (StoredPrompt & { previous?: StoredPrompt }) | null {
  const thread = scopedThread(tables, scope)
  const run = tables.run(thread, runId)
  const steps = run ? statements.all<StepRecord>(stepSql.between, thread.key, run.firstSeq, noLimit) : []
  const found = steps.findLast((one) => one.runId === runId && one.step === step)
  if (!run || !found) return null
  const before = statements.one<StepRecord>(stepSql.previous, thread.key, found.seq, found.step, found.epoch)
  const previousRun = before && (before.runId === runId ? run : tables.run(thread, before.runId))
  const previous = before && previousRun && storedPrompt(statements, thread, previousRun, before)
  return { ...storedPrompt(statements, thread, run, found), ...(previous && { previous }) }
}

const promptRows = `SELECT ${rowColumns} FROM heed_messages WHERE thread = ? AND seq >= ? AND seq < ? ORDER BY seq`

function storedPrompt(statements: Statements, thread: ThreadRecord, run: RunRecord, step: StepRecord): StoredPrompt {
  const head = statements.one<{ text: string; tools: string }>(stepSql.head, step.head)
  const rows = statements.all<RowRecord>(promptRows, thread.key, step.windowFrom, step.seq)
  return {
    run: runRow(thread, run),
    step: stepRow(step),
    ...(head && { head: { ...head } }),
    rows: rows.filter((row) => !isCut(thread, row, step.windowCut)).map((row) => messageRow(thread, row)),
  }
}

export function pruneHeads(
  statements: Statements, { before, after = '', limit }: { before: number; after?: string; limit: number },
): { removed: number; next?: string } {
  const heads = statements.all<{ hash: string; tools: string; usedAt: number }>(stepSql.headsAfter, after, limit)
  let removed = 0
  for (const { hash, tools, usedAt } of heads) {
    if (usedAt >= before || statements.run(stepSql.removeHead, hash, before) === 0) continue
    removed += 1
    statements.execute(stepSql.removeUses, hash)
    statements.execute(stepSql.removeTools, tools, before)
  }
  const last = heads.at(-1)
  return { removed, ...(heads.length === limit && last && { next: last.hash }) }
}

interface ProcessRecord {
  owner: string
  until: number
  length: number
  pid: number | null
  host: string | null
  version: string | null
  startedAt: number | null
  closedAt: number | null
}

export function listProcesses(statements: Statements, now: number): ProcessRow[] {
  const found = statements.all<ProcessRecord>(stepSql.processes)
  const threadsOf = (owner: string) => statements.one<{ threads: number }>(stepSql.threadsOf, owner)?.threads ?? 0
  const rows = found.map((process) => ({ ...processRow(process, now), threads: threadsOf(process.owner) }))
  return rows.toSorted((a, b) => (b.startedAt ?? b.seenAt) - (a.startedAt ?? a.seenAt))
}

function processRow(record: ProcessRecord, now: number): Omit<ProcessRow, 'threads'> {
  const { owner, until, length, pid, host, version, startedAt, closedAt } = record
  return {
    owner,
    seenAt: until - length,
    expiresAt: until,
    ...(pid !== null && { pid }),
    ...(host !== null && { host }),
    ...(version !== null && { version }),
    ...(startedAt !== null && { startedAt }),
    ...(closedAt !== null ? { end: 'closed' as const, endedAt: closedAt } : until < now ? { end: 'expired' as const, endedAt: until } : {}),
  }
}
