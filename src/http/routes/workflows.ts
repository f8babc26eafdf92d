import { HeedError, isHeedError } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import { compileSchema } from '../../schema/compile.ts'
import type { Schema } from '../../schema/schema.ts'
import type { WorkflowChunk } from '../../workflow/chunk.ts'
import type { WorkflowResult, WorkflowRunInfo } from '../../workflow/place/stored-run.ts'
import type { WorkflowRunStatus } from '../../workflow/plan/machine.ts'
import type { ResumeArgs, StartArgs, TimeTravelArgs, WorkflowRun } from '../../workflow/run.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import { resolveResource } from '../auth/principal.ts'
import { isForbidden } from '../request/access.ts'
import { omitUndefined, parseDate } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { anything, date, flag, id, ignored, object, page, perPage, record, text } from '../schema/schemas.ts'

interface Owner {
  resourceId?: string
}

interface StartBody extends Owner {
  inputData?: unknown
  initialState?: Record<string, unknown>
  perStep?: boolean
}

interface RunsQuery extends Owner {
  status?: WorkflowRunStatus[]
  fromDate?: string
  toDate?: string
  page?: number
  perPage?: number
}

const all = '/workflows'
const one = `${all}/:workflowId`
const runs = `${one}/runs`
const ofRun = `${runs}/:runId`

const statuses: readonly WorkflowRunStatus[] = [
  'pending', 'running', 'waiting', 'suspended', 'paused', 'success', 'failed', 'tripwire', 'canceled', 'parked',
]
const owned = { resourceId: id }
const started = { query: object({ runId: id }), body: object({
  ...owned, inputData: anything, initialState: record, perStep: flag, requestContext: record, tracingOptions: ignored,
}) }

/** The workflows of the Heed and their runs. A run belongs to a resource, as a thread does. */
export const workflows: readonly Route[] = [
  route({
    method: 'GET', path: all, summary: 'The workflows of this server', response: 'json', responseSchema: responses.workflowsById,
    async handle({ heed }) {
      const found = Object.values(heed.listWorkflows()) as unknown as Workflow[]
      return Object.fromEntries(await Promise.all(found.map(async (workflow) => [workflow.id, await describe(workflow)]))) as object
    },
  }),
  route({
    method: 'GET', path: one, summary: 'One workflow, with its steps and its schemas', response: 'json', responseSchema: responses.workflow,
    handle: (call) => describe(workflowOf(call)),
  }),
  route<StartBody, { runId?: string }>({
    method: 'POST', path: `${one}/start`, summary: 'Starts a run; started twice under one id, it is one run', response: 'json',
    responseSchema: responses.startedRun, creates: true, ...started,
    handle: async (call) => newRun(call).startAsync(await startArgs(call)),
  }),
  route<StartBody, { runId?: string }>({
    method: 'POST', path: `${one}/stream`, summary: 'Starts a run, and streams it until it has ended or is suspended', response: 'events',
    creates: true, ...started,
    async handle(call) {
      const run = newRun(call)
      return streamed(call, run, await run.startChunks(await startArgs(call)))
    },
  }),
  route<never, RunsQuery>({
    method: 'GET', path: runs, summary: 'Runs of a workflow, newest first', response: 'json', read: true,
    responseSchema: responses.workflowRunPage,
    query: object({
      ...owned, status: { type: 'array', items: { enum: statuses } }, fromDate: date, toDate: date, page, perPage,
    }),
    handle: listRuns,
  }),
  route<never, Owner>({
    method: 'GET', path: ofRun, summary: 'What became of a run so far, with its steps', response: 'json', read: true,
    responseSchema: responses.workflowRun, query: object(owned),
    handle: (call) => present(call, call.query),
  }),
  route<never, Owner & { after?: string }>({
    method: 'GET', path: `${ofRun}/stream`, summary: 'Streams a run from its start, or from a cursor on, until it has ended',
    response: 'events', read: true,
    query: object({ ...owned, after: { ...text, description: 'The cursor of the last chunk that was received.' } }),
    async handle(call) {
      await present(call, call.query)
      const after = call.query.after ?? call.request.header('last-event-id') ?? undefined
      const run = runOf(call, call.query)
      return streamed(call, run, run.observe(omitUndefined({ after })), after)
    },
  }),
  route<Owner & ResumeArgs>({
    method: 'POST', path: `${ofRun}/resume`, summary: 'Answers a suspended step', response: 'json', responseSchema: responses.startedRun,
    body: object({ ...owned, step: id, label: id, forEachIndex: page, resumeData: anything, perStep: flag }),
    handle(call) {
      const { resourceId, ...args } = call.body
      return onRun(call, omitUndefined({ resourceId }), (found) => found.resumeAsync(args))
    },
  }),
  route<Owner & { name: string; data?: unknown; id?: string }>({
    method: 'POST', path: `${ofRun}/events`, summary: 'Sends an event to a run, which ends its wait for it', response: 'json',
    responseSchema: responses.startedRun, body: object({ ...owned, name: id, data: anything, id }, ['name']),
    handle: (call) => onRun(call, call.body, async (found) => {
      const { name, data, id: eventId } = call.body
      await found.sendEvent(name, data, omitUndefined({ id: eventId }))
      return { runId: found.runId }
    }),
  }),
  route<Owner>({
    method: 'POST', path: `${ofRun}/cancel`, summary: 'Cancels a run; without effect when it has ended', response: 'json',
    responseSchema: responses.startedRun, body: object(owned),
    handle: (call) => onRun(call, call.body, async (found) => {
      await found.cancel()
      return { runId: found.runId }
    }),
  }),
  route<Owner>({
    method: 'POST', path: `${ofRun}/restart`, summary: 'Tries a parked run again', response: 'json', responseSchema: responses.startedRun,
    body: object(owned),
    handle: (call) => onRun(call, call.body, async (found) => {
      await found.beginRestart()
      return { runId: found.runId }
    }),
  }),
  route<Owner & TimeTravelArgs<Record<string, unknown>> & { newRunId?: string }>({
    method: 'POST', path: `${ofRun}/time-travel`, summary: 'Begins another run from a step of this one, which stays as it is',
    response: 'json', responseSchema: responses.startedRun,
    body: object(
      {
        ...owned, step: id, inputData: anything, resumeData: anything, initialState: record, context: record, perStep: flag, newRunId: id,
        requestContext: record, tracingOptions: ignored,
      },
      ['step'],
    ),
    async handle(call) {
      const { resourceId, step, newRunId: runId, inputData, resumeData, initialState, context, perStep } = call.body
      const given = { inputData, resumeData, initialState, context, perStep, runId, requestContext: await call.context() }
      const args = { step, ...omitUndefined(given) }
      return onRun(call, omitUndefined({ resourceId }), async (found) => ({ runId: (await found.beginTimeTravel(args)).runId }))
    },
  }),
  route<never, Owner>({
    method: 'DELETE', path: ofRun, summary: 'Deletes a run with all that was recorded of it', response: 'json',
    responseSchema: responses.deletedRun, query: object(owned),
    handle: (call) => onRun(call, call.query, async ({ runId, resourceId }) => {
      return { deleted: await workflowOf(call).deleteWorkflowRunById(runId, omitUndefined({ resourceId })) }
    }),
  }),
]

type Asked = Pick<Call<unknown, unknown>, 'heed' | 'principal' | 'params'>

function workflowOf({ heed, params: { workflowId = '' } }: Asked): Workflow {
  const workflow = heed.findWorkflow(workflowId)
  if (workflow) return workflow as unknown as Workflow
  throw new HeedError('unknown_workflow', `There is no workflow '${workflowId}'.`, { details: { workflowId } })
}

function runOf(call: Asked, { resourceId }: Owner, runId = call.params.runId ?? ''): WorkflowRun {
  return workflowOf(call).createRun({ runId, ...omitUndefined({ resourceId: resolveResource(call.principal, resourceId) }) })
}

/** A reader that lost its connection continues at its cursor, also if the run has ended meanwhile. */
async function streamed(
  { events, gracePeriod }: Pick<Call, 'events' | 'gracePeriod'>, run: WorkflowRun, chunks: AsyncIterable<WorkflowChunk>,
  after?: string,
): Promise<Response> {
  const release = await run.hold(after)
  return events.respond(chunks, { ids: true }, () => gracePeriod.release(release))
}

function newRun(call: Call<StartBody, { runId?: string }>): WorkflowRun {
  return runOf(call, call.body, call.query.runId ?? newId())
}

async function startArgs(call: Call<StartBody, unknown>): Promise<StartArgs> {
  const { inputData, initialState, perStep } = call.body
  return omitUndefined({ inputData, initialState, perStep, requestContext: await call.context() })
}

/** Of a run that exists. One of another resource does not, so that ids can't be probed. */
async function onRun<Result>(call: Asked, owner: Owner, work: (found: WorkflowRun) => Promise<Result>): Promise<Result> {
  const found = runOf(call, owner)
  try {
    return await work(found)
  } catch (error) {
    throw isForbidden(error) || (isHeedError(error) && error.code === 'thread_not_found') ? unknownRun(found.runId) : error
  }
}

function present(call: Asked, owner: Owner): Promise<WorkflowResult> {
  return onRun(call, owner, async (found) => {
    const result = await found.status()
    if (!result) throw unknownRun(found.runId)
    return result
  })
}

function unknownRun(runId: string): HeedError {
  return new HeedError('not_found', `There is no run '${runId}' of this workflow.`, { details: { runId } })
}

async function listRuns(call: Call<never, RunsQuery>): Promise<{ runs: WorkflowRunInfo[]; total: number }> {
  const { resourceId, fromDate, toDate, ...rest } = call.query
  return workflowOf(call).listWorkflowRuns({
    ...rest,
    ...omitUndefined({
      resourceId: resolveResource(call.principal, resourceId),
      fromDate: fromDate === undefined ? undefined : parseDate('fromDate', fromDate),
      toDate: toDate === undefined ? undefined : parseDate('toDate', toDate),
    }),
  })
}

/** Existing clients read schemas as texts. */
async function describe(workflow: Workflow): Promise<object> {
  const schemas = await Promise.all((['inputSchema', 'outputSchema', 'stateSchema'] as const).map(async (name) => [
    name, await schemaText(workflow[name], `${name} of workflow '${workflow.id}'`),
  ]))
  const { id: workflowId, description, metadata, steps, schedules } = workflow.describe()
  return omitUndefined({ id: workflowId, name: workflowId, description, metadata, steps, schedules, ...Object.fromEntries(schemas) as object })
}

async function schemaText(schema: Schema | undefined, subject: string): Promise<string | undefined> {
  return schema === undefined ? undefined : JSON.stringify(await compileSchema(schema, subject).jsonSchema())
}
