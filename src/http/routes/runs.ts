import { HeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import { toBase64 } from '../../message/file-data.ts'
import type { RunDetails, RunRow } from '../../store/contract/threads.ts'
import { readStepPrompt } from '../../thread/control/step-prompt.ts'
import type { AgentThreadSubscription } from '../../thread/stream/subscription.ts'
import { resolveResource } from '../auth/principal.ts'
import { existingScope, findCallerRun, scopeOf, threadIdOf } from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { id, limit, object, page, perPage, record, threadScope } from '../schema/schemas.ts'

interface RunBody {
  runId: string
  offset?: number
}

interface ListQuery {
  threadId?: string
  resourceId?: string
  page?: number
  perPage?: number
}

/** Runs that are active, abandoned or parked. */
export const runs: readonly Route[] = [
  route<RunBody>({
    method: 'POST',
    path: '/agents/:agentId/observe',
    summary: 'Streams one run from its start, or from a chunk, until its end',
    response: 'events',
    read: true,
    body: object({ runId: id, offset: { type: 'integer', minimum: 0 } }, ['runId']),
    handle: async (call) => observe(call, await requireRun(call)),
  }),
  route<RunBody>({
    method: 'POST',
    path: '/agents/:agentId/recover',
    summary: 'Continues an abandoned or parked run, and streams it',
    response: 'events',
    body: object({ runId: id, requestContext: record }, ['runId']),
    async handle(call) {
      const run = await requireRun(call)
      const { threadId, resourceId, runId, status } = run
      if (status === 'parked') await call.agent.retryParked({ threadId, resourceId, runId })
      // A process that already runs it keeps the lease.
      else await call.agent.threads().wake(threadId)
      return observe(call, run)
    },
  }),
  route<never, ListQuery>({
    method: 'GET',
    path: '/agents/:agentId/parked-runs',
    summary: 'Parked runs, newest first',
    response: 'json',
    responseSchema: responses.parkedRuns,
    read: true,
    query: object({ ...threadScope, page, perPage }),
    async handle({ agent, principal, query }) {
      const { threadId, page = 0, perPage = 100 } = query
      const runtime = agent.threads()
      await runtime.open()
      const resourceId = resolveResource(principal, query.resourceId)
      const filter = { status: ['parked' as const], agentId: agent.id, ...omitUndefined({ threadId, resourceId }) }
      const rows = await runtime.store.listRuns({ ...filter, limit: perPage, offset: page * perPage })
      return { runs: rows.map(parkedRun), total: await runtime.store.countRuns(filter) }
    },
  }),
  route<never, { resourceId?: string; page?: number; perPage?: number }>({
    method: 'GET',
    path: '/agents/:agentId/threads/:threadId/runs',
    summary: 'The runs of a thread, newest first, with their steps, takeovers and decisions',
    response: 'json',
    responseSchema: responses.runPage,
    read: true,
    query: object({ resourceId: id, page, perPage: { ...perPage, maximum: 100 } }),
    async handle(call) {
      const { page = 0, perPage = 20 } = call.query
      const scope = await existingScope(call, call.query.resourceId)
      const { store } = call.agent.threads()
      const runs = await store.listRunDetails(scope, { limit: perPage, offset: page * perPage })
      return { runs: runs.map(threadRun), total: await store.countRuns({ threadId: scope.threadId }) }
    },
  }),
  route<never, { resourceId?: string }>({
    method: 'GET',
    path: '/agents/:agentId/threads/:threadId/runs/:runId/steps/:step/prompt',
    summary: 'The prompt of a step, as the model received it',
    response: 'json',
    responseSchema: responses.stepPrompt,
    read: true,
    query: object({ resourceId: id }),
    async handle(call) {
      const { runId = '', step = '' } = call.params
      const scope = await existingScope(call, call.query.resourceId)
      const prompt = /^\d{1,9}$/.test(step) ? await readStepPrompt(call.agent.threads().store, scope, runId, Number(step)) : null
      if (!prompt) throw new HeedError('not_found', `The thread has no step ${step} of run ${runId}.`, { details: { runId, step } })
      return withBase64(prompt)
    },
  }),
  route<{ resourceId?: string; runId?: string }>({
    method: 'POST',
    path: '/agents/:agentId/threads/:threadId/retry',
    summary: 'Continues a parked run from its last finished step',
    response: 'json',
    responseSchema: responses.retried,
    body: object({ resourceId: id, runId: id }),
    handle(call) {
      const { resourceId, runId } = call.body
      return call.agent.retryParked({ ...scopeOf(call.principal, threadIdOf(call), resourceId), ...omitUndefined({ runId }) })
    },
  }),
  route<never, { resourceId?: string; limit?: number }>({
    method: 'GET',
    path: '/agents/:agentId/active-threads',
    summary: 'Threads with an active or suspended run',
    response: 'json',
    responseSchema: responses.activeThreads,
    read: true,
    query: object({ resourceId: id, limit }),
    async handle({ agent, principal, query }) {
      const resourceId = resolveResource(principal, query.resourceId)
      return { threads: await agent.listActiveThreads(omitUndefined({ resourceId, limit: query.limit })) }
    },
  }),
]

function threadRun(details: RunDetails): Record<string, unknown> {
  const { options: _, started: __, suspended: ___, sealSeq: ____, steps, takeovers, decisions, ...run } = details
  return {
    ...run,
    ...times(run, ['startedAt', 'endedAt', 'suspendedAt']),
    steps: steps.map(({ specification: _, window: __, rows: ___, hash: ____, altered, ...step }) => ({
      ...step, ...times(step, ['startedAt', 'finishedAt']), ...(altered === undefined ? {} : { altered: true }),
    })),
    takeovers: takeovers.map((takeover) => ({ ...takeover, ...times(takeover, ['at']) })),
    decisions: decisions.map((decision) => ({ ...decision, ...times(decision, ['at']) })),
  }
}

/** These fields of a record as dates. */
function times<Record extends object>(record: Record, names: ReadonlyArray<keyof Record>): object {
  return Object.fromEntries(names.flatMap((name) => (typeof record[name] === 'number' ? [[name, new Date(record[name])]] : [])))
}

/** The bytes of files as base64. */
function withBase64(value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value)
  if (value instanceof Date || value instanceof URL) return value
  if (Array.isArray(value)) return value.map(withBase64)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withBase64(one)]))
}

/** Rejects a run of another resource or agent with the same error as a run that is not active. */
async function requireRun(call: Call<RunBody, unknown>): Promise<RunRow> {
  const { runId } = call.body
  const run = await findCallerRun(call, runId)
  if (!run) throw notActive(runId)
  return run
}

async function observe(call: Call<RunBody, unknown>, { runId, threadId, resourceId }: RunRow): Promise<Response> {
  const { agent, events, gracePeriod, body: { offset = 0 } } = call
  const scope = { threadId, resourceId }
  const subscription = await agent.subscribeToThread(scope)
  try {
    const isActive = subscription.activeRunId() === runId
    if (!isActive && (await agent.activeRun(scope))?.runId !== runId) throw notActive(runId)
  } catch (error) {
    subscription.unsubscribe()
    throw error
  }
  const release = () => gracePeriod.release(() => subscription.unsubscribe())
  return events.respond(chunksOf(subscription, runId, offset), { ids: false }, release)
}

/** The chunks of one run, until its last one or the start of another run. If its first chunk is no longer kept, `offset` is ignored. */
async function* chunksOf({ stream }: AgentThreadSubscription, runId: string, offset: number): AsyncGenerator<Chunk, void> {
  let index = 0
  for await (const chunk of stream) {
    if (chunk.runId !== runId) {
      if (chunk.type === 'start') return
      continue
    }
    if (index === 0 && chunk.type !== 'start') index = offset
    if (index++ >= offset) yield chunk
    if (chunk.type === 'finish' || chunk.type === 'abort' || chunk.type === 'error') return
  }
}

function parkedRun(row: RunRow): Record<string, unknown> {
  const { runId, threadId, resourceId, agentId, status, step, attempts, startedAt, endedAt, error } = row
  const optional = omitUndefined({ endedAt: endedAt === undefined ? undefined : new Date(endedAt), error })
  return { runId, threadId, resourceId, agentId, status, step, attempts, startedAt: new Date(startedAt), ...optional }
}

function notActive(runId: string): HeedError {
  return new HeedError('no_active_run', `The run '${runId}' is not active. Its output is in the thread's messages.`, { details: { runId } })
}
