import { HeedError } from '../../../base/errors.ts'
import { newId } from '../../../base/ids.ts'
import type { WorkflowChunk } from '../../../workflow/chunk.ts'
import type { RunName, RunPlace } from '../../../workflow/place/place.ts'
import { isSettled, resultOf } from '../../../workflow/place/stored-run.ts'
import { toldChunks } from '../../../workflow/place/told-chunks.ts'
import { isOver, type WorkflowRunStatus } from '../../../workflow/plan/machine.ts'
import type { Moved, ResumeArgs, TimeTravelArgs, WorkflowRun } from '../../../workflow/run.ts'
import type { Workflow } from '../../../workflow/workflow.ts'
import { resolveResource } from '../../auth/principal.ts'
import { omitUndefined } from '../../request/fields.ts'
import {
  createdRun, newRun, onRun, requireStored, runOf, startArgs, streamedRecords, workflowOf, type Owner, type StartBody,
} from '../../request/workflow-runs.ts'
import { route, type Call, type Route } from '../../route.ts'
import * as responses from '../../schema/response-schemas.ts'
import { anything, flag, id, ignored, object, page, record } from '../../schema/schemas.ts'
import { resultForm } from './run-form.ts'

/** Of one run. Existing clients name its resource when they create it, and not again. */
interface RunQuery extends Owner {
  runId: string
}

type ResumeBody = Pick<ResumeArgs, 'resumeData' | 'forEachIndex' | 'perStep'> & { step?: string[] | string }

type Steps = NonNullable<TravelArgs['context']>
type TravelArgs = TimeTravelArgs<Record<string, unknown>>
type TravelBody = Pick<TravelArgs, 'inputData' | 'resumeData' | 'initialState' | 'context' | 'perStep'> & {
  step: string[] | string
  nestedStepsContext?: Record<string, Steps>
}

const one = '/workflows/:workflowId'
const owned = { resourceId: id }
const ofRun = object({ ...owned, runId: id }, ['runId'])
const step = { anyOf: [id, { type: 'array', items: id, minItems: 1, maxItems: 64 }] }
const startBody = object({
  ...owned, inputData: anything, initialState: record, perStep: flag, requestContext: record, tracingOptions: ignored,
})
const resumeBody = object({ step, resumeData: anything, forEachIndex: page, perStep: flag, tracingOptions: ignored })
const restartBody = object({ tracingOptions: ignored })
const travelBody = object({
  step, inputData: anything, resumeData: anything, initialState: record, context: record, perStep: flag, requestContext: record,
  nestedStepsContext: { ...record, additionalProperties: record }, tracingOptions: ignored,
}, ['step'])

/** The routes by which existing clients start, answer, follow and count runs of workflows, over the calls of a run. */
export const existingWorkflowRuns: readonly Route[] = [
  route({
    method: 'GET', path: '/workflows/run-counts', response: 'json',
    summary: 'How many runs of each workflow run, and how many are suspended',
    responseSchema: responses.workflowRunCounts, read: true, query: object(owned), handle: countRuns,
  }),
  route<Owner, { runId?: string }>({
    method: 'POST', path: `${one}/create-run`, summary: 'Names a run and its resource before it is started', response: 'json',
    responseSchema: responses.startedRun, creates: true, query: object({ runId: id }), body: object(owned),
    async handle(call) {
      const run = await newRun(call)
      await workflowOf(call).place.create(run)
      return { runId: run.runId }
    },
  }),
  route<StartBody, { runId?: string }>({
    method: 'POST', path: `${one}/start-async`, summary: 'Starts a run, and waits until it has ended or is suspended', response: 'json',
    responseSchema: responses.workflowResult, creates: true, query: object({ runId: id }), body: startBody,
    async handle(call) {
      const run = await newRun(call)
      await run.startAsync(await startArgs(call))
      return settledForm(call, run)
    },
  }),
  ...(['resume', 'resume-no-wait'] as const).map((name) => route<ResumeBody, RunQuery>({
    method: 'POST', path: `${one}/${name}`, summary: 'Answers a suspended step', response: 'json', responseSchema: responses.startedRun,
    query: ofRun, body: resumeBody,
    handle: (call) => onNamed(call, async (run) => {
      await run.beginResume(resumeArgs(call.body))
      return { runId: run.runId, message: 'The run was resumed.' }
    }),
  })),
  route<ResumeBody, RunQuery>({
    method: 'POST', path: `${one}/resume-async`, response: 'json',
    summary: 'Answers a suspended step, and waits until the run has ended or is suspended again',
    responseSchema: responses.workflowResult, query: ofRun, body: resumeBody,
    handle: (call) => onNamed(call, async (run) => settledForm(call, run, await run.beginResume(resumeArgs(call.body)))),
  }),
  route<ResumeBody, RunQuery>({
    method: 'POST', path: `${one}/resume-stream`, response: 'records',
    summary: 'Answers a suspended step, and streams the run until it has ended or is suspended again',
    query: ofRun, body: resumeBody,
    handle: (call) => onNamed(call, async (run) => {
      const args = resumeArgs(call.body)
      return streamedRecords(call, run, await run.chunksFrom(() => run.beginResume(args)))
    }),
  }),
  route<object, RunQuery>({
    method: 'POST', path: `${one}/restart`, response: 'json',
    summary: 'Tries a parked run again; one that goes on by itself stays as it is',
    responseSchema: responses.startedRun, query: ofRun, body: restartBody,
    handle: (call) => onNamed(call, async (run) => {
      await restarted(call, run)
      return { runId: run.runId, message: 'The run was restarted.' }
    }),
  }),
  route<object, RunQuery>({
    method: 'POST', path: `${one}/restart-async`, summary: 'The same, and waits until the run has ended or is suspended', response: 'json',
    responseSchema: responses.workflowResult, query: ofRun, body: restartBody,
    handle: (call) => onNamed(call, async (run) => settledForm(call, run, await restarted(call, run))),
  }),
  route<TravelBody, RunQuery>({
    method: 'POST', path: `${one}/time-travel`, response: 'json',
    summary: 'Begins another run from a step of this one, which stays as it is',
    responseSchema: responses.startedRun, query: ofRun, body: travelBody,
    handle: (call) => onNamed(call, async (run) => {
      const { runId } = await run.beginTimeTravel(await travelArgs(call))
      return { runId, message: `Run ${runId} was started.` }
    }),
  }),
  route<TravelBody, RunQuery>({
    method: 'POST', path: `${one}/time-travel-async`, summary: 'The same, and waits until the new run has ended or is suspended',
    response: 'json', responseSchema: responses.workflowResult, query: ofRun, body: travelBody,
    handle: (call) => onNamed(call, async (run) => settledForm(call, await run.beginTimeTravel(await travelArgs(call)))),
  }),
  route<TravelBody, RunQuery>({
    method: 'POST', path: `${one}/time-travel-stream`, summary: 'The same, and streams the new run until it has ended or is suspended',
    response: 'records', query: ofRun, body: travelBody,
    handle: (call) => onNamed(call, async (run) => {
      const args = await travelArgs(call)
      const { resourceId } = await requireStored(call, run)
      const next = workflowOf(call).createRun({ runId: newId(), ...omitUndefined({ resourceId }) })
      return streamedRecords(call, next, await next.chunksFrom(async () => {
        await run.beginTimeTravel({ ...args, runId: next.runId })
        return undefined
      }))
    }),
  }),
  route<never, RunQuery & { offset?: number }>({
    method: 'POST', path: `${one}/observe`, summary: 'Streams a run from its start until it has ended, also one that had ended before',
    response: 'records', read: true,
    query: object({
      ...ofRun.properties, offset: { ...page, description: 'How many chunks from the start are left out, where they are retained.' },
    }, ['runId']),
    handle: (call) => onNamed(call, async (run) => {
      await requireStored(call, run)
      return streamedRecords(call, run, fromStart(workflowOf(call).place, run, call.query.offset ?? 0))
    }),
  }),
]

type RunCall<Body = unknown> = Pick<Call<Body, RunQuery>, 'heed' | 'principal' | 'params' | 'query' | 'body' | 'context' | 'request'>

function onNamed<Result>(call: RunCall, work: (run: WorkflowRun) => Promise<Result>): Promise<Result> {
  const { runId, resourceId } = call.query
  const owner = omitUndefined({ resourceId })
  return onRun(call, owner, work, async () => (await createdRun(call, runId, resourceId)) ?? runOf(call, owner, runId))
}

/** Waits for the run, for as long as its caller does. */
async function settledForm(
  call: Pick<RunCall, 'heed' | 'principal' | 'params' | 'request'>, run: WorkflowRun, moved: Moved = () => true,
): Promise<object> {
  const { signal } = call.request
  try {
    const { graph, place } = workflowOf(call)
    return resultForm(graph, resultOf(graph, await place.when(run, (stored) => isSettled(stored) && moved(stored), signal)))
  } catch (cause) {
    throw signal.aborted ? new HeedError('aborted', 'The caller has left. The run goes on.', { cause }) : cause
  }
}

function resumeArgs({ step: named, resumeData, forEachIndex, perStep }: ResumeBody): ResumeArgs {
  return omitUndefined({ step: named, resumeData, forEachIndex, perStep })
}

async function travelArgs(call: RunCall<TravelBody>): Promise<TravelArgs> {
  const { step: named, inputData, resumeData, initialState, perStep, context, nestedStepsContext } = call.body
  const given = { inputData, resumeData, initialState, perStep, context: stepsGiven(context, nestedStepsContext) }
  return { step: named, ...omitUndefined({ ...given, requestContext: await call.context() }) }
}

/** Existing clients give the steps of a workflow within apart, below its id. */
function stepsGiven(context: Steps | undefined, nested: Record<string, Steps> | undefined): Steps | undefined {
  const within = Object.entries(nested ?? {}).flatMap(([name, steps]) => Object.entries(steps).map(([id, one]) => [`${name}.${id}`, one]))
  return nested === undefined ? context : { ...context, ...(Object.fromEntries(within) as Steps) }
}

/** What a run goes on with by itself: another process takes it over where its own has ended. */
const goesOn: ReadonlySet<WorkflowRunStatus> = new Set<WorkflowRunStatus>(['pending', 'running', 'waiting'])

/** Existing clients restart what a process has left behind, and such a run goes on without them: only a parked one waits for it. */
async function restarted(call: RunCall, run: WorkflowRun): Promise<Moved> {
  const { head: { status } } = await requireStored(call, run)
  return goesOn.has(status) ? () => true : run.beginRestart()
}

/** The cursor before the first chunk of a thread. */
const beforeFirst = '1.0'

/**
 * The chunks of a run from its start. Where they are not retained, what its rows tell stands for them: nothing is missed, and a reader that
 * has left out some gets all of them again.
 */
async function* fromStart(place: RunPlace, run: RunName, offset: number): AsyncGenerator<WorkflowChunk> {
  const stop = new AbortController()
  try {
    let left = offset
    for await (const chunk of await place.subscribe(run, { after: beforeFirst, signal: stop.signal })) {
      const stored = chunk.type === 'workflow-snapshot' ? await place.read(run) : null
      const found = stored ? toldChunks(stored) : [chunk]
      if (stored) left = 0
      for (const each of found) {
        if (left-- <= 0) yield each
        const { workflowStatus } = each.payload as { workflowStatus?: WorkflowRunStatus }
        if (workflowStatus !== undefined && isOver(workflowStatus)) return
      }
    }
  } finally {
    stop.abort()
  }
}

async function countRuns({ heed, principal, query }: Call<unknown, Owner>): Promise<object> {
  const owner = omitUndefined({ resourceId: resolveResource(principal, query.resourceId) })
  const workflows = Object.values(heed.listWorkflows()) as unknown as Workflow[]
  return Object.fromEntries(await Promise.all(workflows.map(async (workflow) => {
    const count = async (status: WorkflowRunStatus) => (await workflow.listWorkflowRuns({ ...owner, status, perPage: 1 })).total
    const [running, suspended] = await Promise.all([count('running'), count('suspended')])
    return [workflow.id, { running, suspended }] as const
  })))
}
