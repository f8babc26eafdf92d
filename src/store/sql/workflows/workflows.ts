import type { JSONObject, JSONValue } from '../../../base/json.ts'
import type { Scope } from '../../contract/threads.ts'
import type { ListedWorkflowRun, WorkflowCommit, WorkflowRunQuery, WorkflowRunStore } from '../../contract/workflows.ts'
import { findThread } from '../../core/lease.ts'
import type { ThreadRecord } from '../../core/records.ts'
import type { WorkflowTable } from '../../core/tables.ts'
import type { StoreClock } from '../driver.ts'
import type { SqlValue, Statements } from '../statements.ts'
import type { SqlTables } from '../tables.ts'

const columns = `
  t.id AS threadId, t.resource_id AS resourceId, w.workflow_id AS workflowId, w.run_id AS runId, w.status, w.created_at AS createdAt,
  w.updated_at AS updatedAt`

/** The statements of runs of workflows. Each of them is a search by an index. */
export const workflowSql = {
  put: `
    INSERT INTO heed_workflow_runs (thread, workflow_id, run_id, status, created_at, updated_at, head, input)
    VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)
    ON CONFLICT (thread) DO UPDATE SET status = excluded.status, updated_at = excluded.updated_at, head = excluded.head`,
  putStep: `
    INSERT INTO heed_workflow_steps (thread, path, content) VALUES (?, ?, ?)
    ON CONFLICT (thread, path) DO UPDATE SET content = excluded.content`,
  run: `SELECT ${columns}, w.head, w.input FROM heed_workflow_runs w JOIN heed_threads t ON t.key = w.thread WHERE w.thread = ?`,
  steps: `SELECT content FROM heed_workflow_steps WHERE thread = ? ORDER BY path`,
  purgeRun: `DELETE FROM heed_workflow_runs WHERE thread = ?`,
  purgeSteps: `
    DELETE FROM heed_workflow_steps WHERE thread = ?1 AND path IN (SELECT path FROM heed_workflow_steps WHERE thread = ?1 LIMIT ?2)`,
} as const

interface RunColumns extends ListedWorkflowRun {
  head: string
  input: string | null
}

export class SqlWorkflows implements WorkflowTable {
  readonly #db: Statements
  readonly #clock: StoreClock

  constructor(statements: Statements, clock: StoreClock) {
    this.#db = statements
    this.#clock = clock
  }

  put({ key }: ThreadRecord, { workflowId, runId, status, head, input, steps }: WorkflowCommit): void {
    const stored = input === undefined ? null : JSON.stringify(input)
    this.#db.execute(workflowSql.put, key, workflowId, runId, status, this.#clock.now(), JSON.stringify(head), stored)
    for (const { path, row } of steps) this.#db.execute(workflowSql.putStep, key, path, JSON.stringify(row))
  }
}

export function getWorkflowRun(
  statements: Statements, tables: SqlTables, scope: Scope,
): Awaited<ReturnType<WorkflowRunStore['getWorkflowRun']>> {
  const thread = findThread(tables, scope)
  const run = thread && statements.one<RunColumns>(workflowSql.run, thread.key)
  if (!run) return null
  const { input, head, ...columnsOfRun } = run
  const steps = statements.all<{ content: string }>(workflowSql.steps, thread.key).map(({ content }) => JSON.parse(content) as JSONObject)
  const values = { head: JSON.parse(head) as JSONObject, ...(input === null ? {} : { input: JSON.parse(input) as JSONValue }) }
  return { ...columnsOfRun, ...values, steps }
}

export function listWorkflowRuns(statements: Statements, query: WorkflowRunQuery): { runs: ListedWorkflowRun[]; total: number } {
  const { workflowId, resourceId, status, from, to, limit, offset = 0 } = query
  const wanted: Array<[string, SqlValue]> = [['w.workflow_id = ?', workflowId]]
  if (resourceId !== undefined) wanted.push(['t.resource_id = ?', resourceId])
  if (from !== undefined) wanted.push(['w.created_at >= ?', from])
  if (to !== undefined) wanted.push(['w.created_at <= ?', to])
  if (status) wanted.push([`w.status IN (${status.map(() => '?').join(', ')})`, ''])
  const where = wanted.map(([condition]) => condition).join(' AND ')
  const values = wanted.flatMap(([condition, value]): SqlValue[] => (condition.startsWith('w.status IN') ? [...(status ?? [])] : [value]))
  const tables = 'heed_workflow_runs w JOIN heed_threads t ON t.key = w.thread'
  const total = statements.one<{ total: number }>(`SELECT count(*) AS total FROM ${tables} WHERE ${where}`, ...values)?.total ?? 0
  const runs = statements.all<ListedWorkflowRun>(
    `SELECT ${columns} FROM ${tables} WHERE ${where} ORDER BY w.created_at DESC, w.thread DESC LIMIT ? OFFSET ?`, ...values, limit, offset,
  )
  return { runs, total }
}
