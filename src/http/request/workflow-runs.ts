import { HeedError, isHeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { WorkflowChunk } from '../../workflow/chunk.ts'
import type { StoredRun } from '../../workflow/place/stored-run.ts'
import type { StartArgs, WorkflowRun } from '../../workflow/run.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import { mayAccess, resolveResource } from '../auth/principal.ts'
import type { Call } from '../route.ts'
import { isForbidden } from './access.ts'
import { omitUndefined } from './fields.ts'

/** The runs of workflows that a caller may access. */

/** Whose run is meant. */
export interface Owner {
  resourceId?: string
}

export interface StartBody extends Owner {
  inputData?: unknown
  initialState?: Record<string, unknown>
  perStep?: boolean
}

type Asked = Pick<Call<unknown, unknown>, 'heed' | 'principal' | 'params'>

export function workflowOf({ heed, params: { workflowId = '' } }: Asked): Workflow {
  const workflow = heed.findWorkflow(workflowId)
  if (workflow) return workflow as unknown as Workflow
  throw new HeedError('unknown_workflow', `There is no workflow '${workflowId}'.`, { details: { workflowId } })
}

export function runOf(call: Asked, { resourceId }: Owner, runId = call.params.runId ?? ''): WorkflowRun {
  return workflowOf(call).createRun({ runId, ...omitUndefined({ resourceId: resolveResource(call.principal, resourceId) }) })
}

/** A run that may exist. Where the request names no resource, one that was created before keeps its own. */
export async function newRun(call: Pick<Call<Owner, { runId?: string } & Owner>, 'heed' | 'principal' | 'params' | 'query' | 'body'>) {
  const { runId } = call.query
  const resourceId = call.body.resourceId ?? call.query.resourceId
  if (runId === undefined) return runOf(call, omitUndefined({ resourceId }), newId())
  return (await createdRun(call, runId, resourceId)) ?? runOf(call, omitUndefined({ resourceId }), runId)
}

/** The run with the resource that it was created for, where the request has not said which: existing clients name it only then. */
export async function createdRun(call: Asked, runId: string, resourceId: string | undefined): Promise<WorkflowRun | undefined> {
  const { resources } = call.principal
  if (resourceId !== undefined || (resources !== '*' && resources.length < 2)) return undefined
  const workflow = workflowOf(call)
  const stored = await workflow.place.read({ runId })
  if (stored?.resourceId === undefined || !mayAccess(call.principal, stored.resourceId)) return undefined
  return workflow.createRun({ runId, resourceId: stored.resourceId })
}

export async function startArgs(call: Pick<Call<StartBody, unknown>, 'body' | 'context'>): Promise<StartArgs> {
  const { inputData, initialState, perStep } = call.body
  return omitUndefined({ inputData, initialState, perStep, requestContext: await call.context() })
}

/** A reader that lost its connection continues at its cursor, also if the run has ended meanwhile. */
export async function streamed(
  { events, gracePeriod }: Pick<Call, 'events' | 'gracePeriod'>, run: WorkflowRun, chunks: AsyncIterable<WorkflowChunk>,
  { after, records = false }: { after?: string | undefined; records?: boolean } = {},
): Promise<Response> {
  const release = await run.hold(after)
  return events.respond(chunks, { ids: !records, records }, () => gracePeriod.release(release))
}

/** The same, as records unless the request accepts server-sent events: existing clients say nothing of what they accept. */
export function streamedRecords(
  call: Pick<Call, 'events' | 'gracePeriod' | 'request'>, run: WorkflowRun, chunks: AsyncIterable<WorkflowChunk>,
): Promise<Response> {
  return streamed(call, run, chunks, { records: !(call.request.header('accept') ?? '').includes('text/event-stream') })
}

/** Of a run that exists. One of another resource does not, so that ids can't be probed. */
export async function onRun<Result>(
  call: Asked, owner: Owner, work: (found: WorkflowRun) => Promise<Result>,
  find: () => WorkflowRun | Promise<WorkflowRun> = () => runOf(call, owner),
): Promise<Result> {
  const found = await find()
  try {
    return await work(found)
  } catch (error) {
    throw isForbidden(error) || (isHeedError(error) && error.code === 'thread_not_found') ? unknownRun(found.runId) : error
  }
}

/** The run as it is stored. */
export async function requireStored(call: Asked, run: WorkflowRun): Promise<StoredRun> {
  const stored = await workflowOf(call).place.read(run)
  if (!stored) throw unknownRun(run.runId)
  return stored
}

export function unknownRun(runId: string): HeedError {
  return new HeedError('not_found', `There is no run '${runId}' of this workflow.`, { details: { runId } })
}
