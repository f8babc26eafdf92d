import { workflowRunner } from '../../../store/contract/thread-row.ts'
import { resultOf, type StepRecord, type StoredRun, type WorkflowResult, type WorkflowRunInfo } from '../../../workflow/place/stored-run.ts'
import { describeGraph, shapeAt, type WorkflowGraph } from '../../../workflow/plan/graph.ts'
import type { Workflow } from '../../../workflow/workflow.ts'
import { omitUndefined } from '../../request/fields.ts'

/** Runs of workflows as existing clients read them. */

/** What a run has besides its name, its status and its times. */
export const runFields = ['result', 'error', 'payload', 'steps', 'activeStepsPath', 'serializedStepGraph'] as const
export type RunField = (typeof runFields)[number]

/** A run in a list. Its values are read with the run. */
export function runInfoForm({ resourceId, ...run }: WorkflowRunInfo): object {
  const { runId, workflowId, status, updatedAt } = run
  return {
    ...run, workflowName: workflowId, ...ownerForm(workflowId, resourceId), snapshot: { runId, status, timestamp: updatedAt.getTime() },
  }
}

/** What became of a run so far: as `status()` gives it, and as existing clients read it. */
export function storedRunForm(
  { graph }: Pick<Workflow, 'graph'>, stored: StoredRun,
  { fields, withNestedWorkflows = true }: { fields?: RunField[]; withNestedWorkflows?: boolean },
): object {
  const { head: { workflowId, createdAt, updatedAt }, input, rows, resourceId } = stored
  const result = resultOf(graph, stored)
  const steps = Object.fromEntries(Object.entries(result.steps).filter(([, { path }]) => withNestedWorkflows || !path.includes('/')))
  const named = {
    runId: result.runId, status: result.status, workflowName: workflowId, ...ownerForm(workflowId, resourceId),
    createdAt: new Date(createdAt), updatedAt: new Date(updatedAt),
  }
  const asked: Record<RunField, unknown> = {
    result: result.status === 'success' ? result.result : undefined,
    error: 'error' in result ? result.error : undefined,
    payload: input,
    steps,
    activeStepsPath: Object.fromEntries(rows.filter(({ kind, status }) => kind === 'step' && active.has(status)).map(
      ({ path, stepId }) => [stepNames(graph, path, stepId).join('.'), numbersIn(path)],
    )),
    serializedStepGraph: describeGraph(graph),
  }
  if (!fields) return { ...result, ...named, ...omitUndefined(asked) }
  return { ...named, ...omitUndefined(Object.fromEntries(fields.map((field) => [field, asked[field]]))) }
}

const active: ReadonlySet<string> = new Set(['running', 'waiting', 'suspended'])

/** How a run went, for a caller that has waited for it: suspended steps by their ids. */
export function resultForm(graph: WorkflowGraph, result: WorkflowResult): object {
  const { path: records, ...rest } = result
  if (result.status !== 'suspended') return rest
  const waiting = result.suspended.flatMap((path) => records.find((record) => record.path === path) ?? [])
  const labels = Object.entries(result.resumeLabels).flatMap(([label, path]) => {
    const record = waiting.find((one) => one.path === path)
    return record ? [[label, { stepId: nameIn(graph, record), path }] as const] : []
  })
  return {
    ...rest,
    suspended: waiting.map(({ path, stepId }) => stepNames(graph, path, stepId)),
    suspendPayload: Object.fromEntries(waiting.map((record) => [nameIn(graph, record), record.suspendPayload])),
    resumeLabels: Object.fromEntries(labels),
  }
}

/** The id of a step, behind those of the workflows that it is in. */
function stepNames(graph: WorkflowGraph, path: string, stepId: string): string[] {
  const parts = path.split('/')
  const above = parts.slice(0, -1).map((_, index) => shapeAt(graph, parts.slice(0, index + 1).join('/'))?.replace(/^\w+ /, '') ?? '?')
  return [...above, stepId]
}

function nameIn(graph: WorkflowGraph, { path, stepId }: StepRecord): string {
  return stepNames(graph, path, stepId).join('.')
}

function numbersIn(path: string): number[] {
  return [...path.matchAll(/\d+/g)].map(Number)
}

/** A run without an owner belongs to its workflow. */
function ownerForm(workflowId: string, resourceId: string | undefined): { resourceId?: string } {
  return resourceId === undefined || resourceId === workflowRunner(workflowId) ? {} : { resourceId }
}
