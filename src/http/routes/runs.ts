import type { Chunk } from '../../run/chunk.ts'
import type { RunRow } from '../../store/contract/threads.ts'
import type { AgentThreadSubscription } from '../../thread/watch/subscription.ts'
import { HeedError } from '../../base/errors.ts'
import { mayReach, resourceOf } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { closed, id, limit, object, page, perPage, record, threadScope } from '../schema/schemas.ts'
import { scopeOf } from './watching.ts'
import { given } from './threads.ts'

interface OneRun {
  runId: string
  offset?: number
}

interface Listing {
  threadId?: string
  resourceId?: string
  page?: number
  perPage?: number
}

/** Runs that are under way, were left, or were given up. */
export const runs: readonly Route[] = [
  route<OneRun>({
    method: 'POST', path: '/agents/:agentId/observe', summary: 'Watches one run from its start, or from a chunk on, until it is over', answer: 'events', read: true,
    body: object({ runId: id, offset: { type: 'integer', minimum: 0 } }, ['runId']),
    handle: async (call) => observe(call, await runOf(call)),
  }),
  route<OneRun>({
    method: 'POST', path: '/agents/:agentId/recover', summary: 'Takes up a run that was left or parked, and watches it', answer: 'events',
    body: object({ runId: id, requestContext: record }, ['runId']),
    async handle(call) {
      const run = await runOf(call)
      if (run.status === 'parked') await call.agent.retryParked({ threadId: run.threadId, resourceId: run.resourceId, runId: run.runId })
      // Whoever runs it already keeps it.
      else await call.agent.threads().wake(run.threadId)
      return observe(call, run)
    },
  }),
  route<never, Listing>({
    method: 'GET', path: '/agents/:agentId/parked-runs', summary: 'Runs that were given up after repeated failures, newest first', answer: 'json', read: true, query: object({ ...threadScope, page, perPage }),
    async handle({ agent, principal, query: { threadId, resourceId, page: at = 0, perPage: most = 100 } }) {
      const runtime = agent.threads()
      await runtime.open()
      const wanted = { status: ['parked' as const], agentId: agent.id, ...given({ threadId, resourceId: resourceOf(principal, resourceId) }) }
      const found = await runtime.store.listRuns({ ...wanted, limit: most, offset: at * most })
      return { runs: found.map(parked), total: await runtime.store.countRuns(wanted) }
    },
  }),
  route<{ resourceId?: string; runId?: string }>({
    method: 'POST', path: '/agents/:agentId/threads/:threadId/retry', summary: 'Takes up a parked run from its last finished step', answer: 'json', body: closed({ resourceId: id, runId: id }),
    handle: ({ agent, principal, params: { threadId = '' }, body: { resourceId, runId } }) => agent.retryParked({ ...scopeOf(principal, threadId, resourceId), ...given({ runId }) }),
  }),
  route<never, { resourceId?: string; limit?: number }>({
    method: 'GET', path: '/agents/:agentId/active-threads', summary: 'Threads on which something runs or waits for somebody', answer: 'json', read: true, query: object({ resourceId: id, limit }),
    handle: async ({ agent, principal, query: { resourceId, limit: most } }) => ({ threads: await agent.listActiveThreads(given({ resourceId: resourceOf(principal, resourceId), limit: most })) }),
  }),
]

/** A run is addressed by its id alone: whose it is, the row says. One of somebody else is told like one that isn't there. */
async function runOf({ agent, principal, body: { runId } }: Call<OneRun, unknown>): Promise<RunRow> {
  const runtime = agent.threads()
  await runtime.open()
  const run = await runtime.store.findRun(runId)
  if (!run || run.agentId !== agent.id || !mayReach(principal, run.resourceId)) throw notActive(runId)
  return run
}

async function observe({ agent, events, lingering, body: { offset = 0 } }: Call<OneRun, unknown>, { runId, threadId, resourceId }: RunRow): Promise<Response> {
  const scope = { threadId, resourceId }
  const subscription = await agent.subscribeToThread(scope)
  try {
    const known = subscription.activeRunId() === runId
    if (!known && (await agent.activeRun(scope))?.runId !== runId) throw notActive(runId)
  } catch (error) {
    subscription.unsubscribe()
    throw error
  }
  return events.respond(chunksOf(subscription, runId, offset), { ids: false }, () => lingering.release(() => subscription.unsubscribe()))
}

/** The chunks of one run. It is over with its last word, or when another speaks. Where its start is no longer kept, nothing is counted off. */
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

function parked({ runId, threadId, resourceId, agentId, status, step, attempts, startedAt, endedAt, error }: RunRow): Record<string, unknown> {
  return { runId, threadId, resourceId, agentId, status, step, attempts, startedAt: new Date(startedAt), ...given({ endedAt: endedAt === undefined ? undefined : new Date(endedAt), error }) }
}

function notActive(runId: string): HeedError {
  return new HeedError('no_active_run', `The run '${runId}' is not active. What it said is in the thread's messages.`, { details: { runId } })
}
