import { HeedError, type HeedErrorCode } from '../../base/errors.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { Usage } from '../../message/chunk.ts'
import type { RequestContext } from '../../run/request-context.ts'
import { chunkPayload, type WorkflowChunk } from '../chunk.ts'
import type { RunHead } from '../execution-host.ts'
import { shapeAt, stepsOf, type WorkflowGraph } from '../plan/graph.ts'
import { isOver, type WorkflowRunStatus } from '../plan/machine.ts'
import { stepAt, type StepRow } from '../plan/plan.ts'

/** A run as its place has it. */
export interface StoredRun {
  head: RunHead
  input: JSONValue | undefined
  rows: StepRow[]
  resourceId?: string | undefined
  requestContext?: RequestContext
}

/** Whether a run has ended, or waits for a caller. */
export function isSettled({ head: { status } }: StoredRun): boolean {
  return isOver(status) || status === 'suspended' || status === 'paused' || status === 'parked'
}

/** What a run recorded of a step. */
export interface StepRecord {
  path: string
  stepId: string
  status: StepRow['status']
  payload?: JSONValue
  output?: JSONValue
  error?: JSONObject
  suspendPayload?: JSONValue
  resumePayload?: JSONValue
  attempts: number
  startedAt: number
  endedAt?: number
  suspendedAt?: number
  resumedAt?: number
  /** When it goes on by itself. */
  dueAt?: number
  /** That of the step. */
  metadata?: Readonly<Record<string, unknown>>
}

interface Told<State> {
  runId: string
  input: unknown
  /**
   * By the ids of the steps; of a step that ran several times, the last. Steps of a workflow within have its id and a dot before theirs.
   */
  steps: Record<string, StepRecord>
  /** All of them, by their paths, in the order of their paths. */
  path: StepRecord[]
  /** The names of the steps, as in `steps`, in the order in which they began. */
  stepExecutionPath: string[]
  state: State
  /** What the agents of its steps took together; absent where none was asked. */
  usage?: Usage
}

/** What became of a run so far. */
export type WorkflowResult<Output = unknown, State = unknown> = Told<State> & (
  | { status: 'success'; result: Output }
  | { status: 'failed'; error: Error }
  | { status: 'parked'; error: Error }
  | { status: 'tripwire'; tripwire: { reason: string; retry?: boolean; metadata?: unknown; processorId?: string } }
  /** `suspended`: the paths of the steps that a caller may resume, with what each of them asks in `suspendPayload`. */
  | { status: 'suspended'; suspended: string[]; suspendPayload: Record<string, unknown>; resumeLabels: Record<string, string> }
  | { status: 'canceled' }
  /** `paused`: it goes on one step at a time, and `resume()` lets it go on. */
  | { status: 'paused' | 'waiting' | 'running' | 'pending' }
)

/** In place of chunks that are not retained. */
export function snapshotOf({ head: { runId, status, result, error } }: StoredRun): WorkflowChunk {
  const payload = { workflowStatus: status, finalWorkflowResult: result ?? null, ...(error ? { error } : {}) }
  return { type: 'workflow-snapshot', runId, from: 'WORKFLOW', payload: chunkPayload(payload) }
}

/** A run in a list. */
export interface WorkflowRunInfo {
  runId: string
  workflowId: string
  status: WorkflowRunStatus
  resourceId?: string | undefined
  createdAt: Date
  updatedAt: Date
}

export function resultOf<Output, State>(graph: WorkflowGraph, { head, input, rows }: StoredRun): WorkflowResult<Output, State> {
  const named: Array<[string, StepRecord]> = []
  const begun: Array<[string, number]> = []
  for (const row of rows) {
    const { path, stepId, kind, startedAt } = row
    if (path.startsWith('!') || kind === 'ask') continue
    const name = nameOf(graph, path, stepId)
    named.push([name, stepRecord(graph, row)])
    if (kind === 'step') begun.push([name, startedAt])
  }
  const told: Told<State> = {
    runId: head.runId,
    input,
    steps: Object.fromEntries(named),
    path: named.map(([, record]) => record),
    stepExecutionPath: begun.sort(([, one], [, other]) => one - other).map(([name]) => name),
    state: head.state as State,
    ...(head.usage ? { usage: head.usage } : {}),
  }
  const { status } = head
  if (status === 'success') return { ...told, status, result: head.result as Output }
  if (status === 'failed' || status === 'parked') return { ...told, status, error: errorOf(head.error) }
  if (status === 'tripwire') return { ...told, status, tripwire: tripwireOf(head.error) }
  if (status !== 'suspended') return { ...told, status }
  const waiting = rows.filter((row) => row.status === 'suspended')
  return {
    ...told,
    status,
    suspended: waiting.map(({ path }) => path),
    suspendPayload: Object.fromEntries(waiting.map(({ path, suspend }) => [path, suspend?.payload])),
    resumeLabels: Object.fromEntries(waiting.flatMap(({ path, suspend }) => (suspend?.label === undefined ? [] : [[suspend.label, path]]))),
  }
}

/** The id of a step, with those of the workflows that it is in before it. */
export function nameOf(graph: WorkflowGraph, path: string, stepId: string): string {
  if (!path.includes('/')) return stepId
  const parts = path.split('/')
  const above = parts.slice(0, -1).map((_, index) => shapeAt(graph, parts.slice(0, index + 1).join('/'))?.replace(/^\w+ /, '') ?? '?')
  return [...above, stepId].join('.')
}

/** Sorts rows by the numbers in their paths. */
export function inPathOrder(rows: Iterable<StepRow>): StepRow[] {
  const keys = new Map([...rows].map((row) => [row, (row.path.match(/\d+/g) ?? []).map(Number)]))
  return [...keys.keys()].toSorted((one, other) => {
    const [a, b] = [keys.get(one) ?? [], keys.get(other) ?? []]
    const differs = a.findIndex((number, index) => number !== b[index])
    return differs === -1 ? a.length - b.length : (a[differs] ?? 0) - (b[differs] ?? Infinity)
  })
}

function stepRecord(graph: WorkflowGraph, row: StepRow): StepRecord {
  const { path, stepId, status, attempt, startedAt } = row
  const record: StepRecord = { path, stepId, status, attempts: attempt, startedAt }
  if (row.input !== undefined) record.payload = row.input
  if (row.output !== undefined) record.output = row.output
  if (row.error !== undefined) record.error = row.error
  if (row.suspend?.payload !== undefined) record.suspendPayload = row.suspend.payload
  if (row.resume !== undefined) record.resumePayload = row.resume
  for (const time of ['endedAt', 'suspendedAt', 'resumedAt', 'dueAt'] as const) if (row[time] !== undefined) record[time] = row[time]
  const metadata = row.kind === 'step' && hasMetadata(graph) ? stepAt(graph, path)?.metadata : undefined
  if (metadata) record.metadata = metadata
  return record
}

const graphsWithMetadata = new WeakMap<WorkflowGraph, boolean>()

/** Whether a step of a committed workflow has metadata: of the others, no step is looked up. */
function hasMetadata(graph: WorkflowGraph): boolean {
  let has = graphsWithMetadata.get(graph)
  if (has === undefined) graphsWithMetadata.set(graph, (has = stepsOf(graph).some(({ metadata }) => metadata !== undefined)))
  return has
}

/** The error of a run, from what is stored of it. */
export function errorOf(stored: JSONObject | undefined): Error {
  const { code, message, details } = stored ?? {}
  const known = typeof code === 'string' ? (code as HeedErrorCode) : 'step_failed'
  return new HeedError(known, typeof message === 'string' ? message : 'The run failed.', {
    details: {
      ...(typeof details === 'object' ? (details as Record<string, unknown>) : {}),
      ...(stored?.name === undefined ? {} : { name: stored.name }),
    },
  })
}

function tripwireOf(stored: JSONObject | undefined): { reason: string; processorId?: string } {
  const { processorId, reason } = (stored?.details ?? {}) as { processorId?: string; reason?: string }
  return { reason: reason ?? String(stored?.message ?? ''), ...(processorId === undefined ? {} : { processorId }) }
}
