import { HeedError } from '../../base/errors.ts'
import type { WorkflowRunStatus } from '../../workflow/plan/machine.ts'
import type { ResumeArgs, TimeTravelArgs } from '../../workflow/run.ts'
import type { Workflow } from '../../workflow/workflow.ts'
import { resolveResource } from '../auth/principal.ts'
import { omitUndefined, parseDate } from '../request/fields.ts'
import {
  newRun, onRun, requireStored, runOf, startArgs, streamed, streamedRecords, workflowOf, type Owner, type StartBody,
} from '../request/workflow-runs.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { anything, date, flag, id, ignored, object, page, perPage, record, text } from '../schema/schemas.ts'
import { runFields, runInfoForm, storedRunForm, type RunField } from './existing-clients/run-form.ts'
import { workflowInfo } from './existing-clients/workflow-info.ts'

interface RunsQuery extends Owner {
  status?: WorkflowRunStatus[]
  fromDate?: string
  toDate?: string
  page?: number
  perPage?: number
  limit?: number
  offset?: number
}

interface OneRunQuery extends Owner {
  fields?: RunField[]
  withNestedWorkflows?: boolean
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
  route<never, { partial?: boolean }>({
    method: 'GET', path: all, summary: 'The workflows of this server', response: 'json', responseSchema: responses.workflowsById,
    query: object({ partial: { ...flag, description: 'Without their steps and schemas.' } }),
    async handle({ heed, query: { partial } }) {
      const found = Object.values(heed.listWorkflows()) as unknown as Workflow[]
      const described = await Promise.all(found.map(async (workflow) => [workflow.id, await workflowInfo(workflow, partial)] as const))
      return Object.fromEntries(described)
    },
  }),
  route({
    method: 'GET', path: one, summary: 'One workflow, with its steps and its schemas', response: 'json', responseSchema: responses.workflow,
    handle: (call) => workflowInfo(workflowOf(call)),
  }),
  route<StartBody, { runId?: string }>({
    method: 'POST', path: `${one}/start`, summary: 'Starts a run; started twice under one id, it is one run', response: 'json',
    responseSchema: responses.startedRun, creates: true, ...started,
    async handle(call) {
      const run = await newRun(call)
      return { ...(await run.startAsync(await startArgs(call))), message: 'The run was started.' }
    },
  }),
  route<StartBody & { closeOnSuspend?: boolean }, { runId?: string }>({
    method: 'POST', path: `${one}/stream`, summary: 'Starts a run, and streams it until it has ended or is suspended', response: 'records',
    creates: true, query: started.query, body: object({ ...started.body.properties, closeOnSuspend: flag }),
    async handle(call) {
      const run = await newRun(call)
      const args = await startArgs(call)
      return streamedRecords(call, run, await run.chunksFrom(() => run.startAsync(args).then(() => undefined), call.body.closeOnSuspend))
    },
  }),
  route<never, RunsQuery>({
    method: 'GET', path: runs, summary: 'Runs of a workflow, newest first', response: 'json', read: true,
    responseSchema: responses.workflowRunPage,
    query: object({
      ...owned, status: { type: 'array', items: { enum: statuses } }, fromDate: date, toDate: date, page, perPage,
      limit: { ...perPage, description: 'Of existing clients: perPage.' },
      offset: { ...page, description: 'Of existing clients: how many runs come before the page, a multiple of limit.' },
    }),
    handle: listRuns,
  }),
  route<never, OneRunQuery>({
    method: 'GET', path: ofRun, summary: 'What became of a run so far, with its steps', response: 'json', read: true,
    responseSchema: responses.workflowRun,
    query: object({
      ...owned,
      fields: { type: 'array', items: { enum: runFields }, description: 'Of what it has besides its name, status and times: these alone.' },
      withNestedWorkflows: { ...flag, description: 'false: without the steps of workflows within.' },
    }),
    handle(call) {
      const { fields, withNestedWorkflows } = call.query
      const wanted = omitUndefined({ fields, withNestedWorkflows })
      return onRun(call, call.query, async (found) => storedRunForm(workflowOf(call), await requireStored(call, found), wanted))
    },
  }),
  route<never, Owner & { after?: string }>({
    method: 'GET', path: `${ofRun}/stream`, summary: 'Streams a run from its start, or from a cursor on, until it has ended',
    response: 'events', read: true,
    query: object({ ...owned, after: { ...text, description: 'The cursor of the last chunk that was received.' } }),
    async handle(call) {
      await onRun(call, call.query, (found) => requireStored(call, found))
      const after = call.query.after ?? call.request.header('last-event-id') ?? undefined
      const run = runOf(call, call.query)
      return streamed(call, run, run.observe(omitUndefined({ after })), { after })
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
    responseSchema: responses.startedRun, body: object(owned), bodyOptional: true,
    handle: (call) => onRun(call, call.body, async (found) => {
      await found.cancel()
      return { runId: found.runId, message: 'The run was canceled.' }
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
      const deleted = await workflowOf(call).deleteWorkflowRunById(runId, omitUndefined({ resourceId }))
      return { deleted, message: deleted ? 'The run was deleted.' : 'There was no such run.' }
    }),
  }),
]

async function listRuns(call: Call<never, RunsQuery>): Promise<{ runs: object[]; total: number }> {
  const { resourceId, fromDate, toDate, status } = call.query
  const { runs: found, total } = await workflowOf(call).listWorkflowRuns({
    ...pageOf(call.query),
    ...omitUndefined({
      status,
      resourceId: resolveResource(call.principal, resourceId),
      fromDate: fromDate === undefined ? undefined : parseDate('fromDate', fromDate),
      toDate: toDate === undefined ? undefined : parseDate('toDate', toDate),
    }),
  })
  return { runs: found.map(runInfoForm), total }
}

/** The page that is asked for. Existing clients may name it by its first run. */
function pageOf({ page: number, perPage: size, limit, offset }: RunsQuery): { page?: number; perPage?: number } {
  if (limit === undefined && offset === undefined) return omitUndefined({ page: number, perPage: size })
  if (number !== undefined || size !== undefined) {
    throw new HeedError('invalid_argument', 'limit and offset must be left out beside page and perPage.', { details: { field: 'limit' } })
  }
  const runsOfPage = limit ?? 20
  if ((offset ?? 0) % runsOfPage !== 0) {
    throw new HeedError('invalid_argument', `offset must be a multiple of limit, ${runsOfPage}.`, { details: { field: 'offset' } })
  }
  return { page: (offset ?? 0) / runsOfPage, perPage: runsOfPage }
}
