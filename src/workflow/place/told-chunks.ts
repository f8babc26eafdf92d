import { chunkPayload, type WorkflowChunk } from '../chunk.ts'
import { isOver } from '../plan/machine.ts'
import type { StepRow } from '../plan/plan.ts'
import type { StoredRun } from './stored-run.ts'

interface Told {
  at: number
  type: WorkflowChunk['type']
  payload: Record<string, unknown>
}

/**
 * What a run has published so far, as its rows tell it: for readers of a run whose chunks are not retained. What steps wrote, and what they
 * suspended with before the last time, is in no row, nor is the progress of lists.
 */
export function toldChunks({ head, rows }: StoredRun): WorkflowChunk[] {
  const { runId, workflowId, status, result, error, usage } = head
  const chunk = (type: WorkflowChunk['type'], payload: Record<string, unknown>): WorkflowChunk => (
    { type, runId, from: 'WORKFLOW', payload: chunkPayload(payload) }
  )
  if (status === 'pending') return []
  const steps = rows.filter(({ path, kind }) => !path.startsWith('!') && kind !== 'ask').flatMap(rowChunks).toSorted((a, b) => a.at - b.at)
  const told = [chunk('workflow-start', { workflowId }), ...steps.map(({ type, payload }) => chunk(type, payload))]
  if (status === 'suspended') told.push(chunk('workflow-suspended', {}))
  if (status === 'paused') told.push(chunk('workflow-paused', {}))
  if (status === 'canceled') told.push(chunk('workflow-canceled', {}))
  if (isOver(status) || status === 'parked') {
    told.push(chunk('workflow-finish', {
      workflowStatus: status, finalWorkflowResult: result ?? null, ...(error ? { error } : {}), ...(usage ? { output: { usage } } : {}),
      metadata: {},
    }))
  }
  return told
}

function rowChunks(row: StepRow): Told[] {
  const about = { id: row.stepId, stepCallId: row.path }
  if (row.kind !== 'step') return waitChunks(row, about)
  const started = (at: number): Told => ({
    at, type: 'workflow-step-start', payload: { ...about, status: 'running', payload: row.input ?? null, startedAt: row.startedAt },
  })
  // One that timeTravel() has given an input has not begun.
  const told = row.attempt > 0 ? [started(row.startedAt)] : []
  if (row.suspend && row.suspendedAt !== undefined) {
    const payload = { ...about, status: 'suspended', suspendPayload: row.suspend.payload ?? null }
    told.push({ at: row.suspendedAt, type: 'workflow-step-suspended', payload })
  }
  if (row.resumedAt !== undefined && row.status !== 'suspended') told.push(started(row.resumedAt))
  return [...told, ...endChunks(row, about)]
}

function endChunks({ status, output, error, endedAt: at, stepId }: StepRow, about: object): Told[] {
  if (at === undefined) return []
  if (status === 'failed') return [{ at, type: 'workflow-step-result', payload: { ...about, status, error } }]
  if (status !== 'success') return []
  return [
    { at, type: 'workflow-step-result', payload: { ...about, status, output: output ?? null } },
    { at, type: 'workflow-step-finish', payload: { id: stepId, metadata: {} } },
  ]
}

function waitChunks({ startedAt: at, dueAt }: StepRow, about: object): Told[] {
  return [{ at, type: 'workflow-step-waiting', payload: { ...about, ...(dueAt === undefined ? {} : { dueAt }) } }]
}
