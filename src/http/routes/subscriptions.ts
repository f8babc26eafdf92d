import type { Agent } from '../../agent/agent.ts'
import { describe } from '../../base/errors.ts'
import { newId } from '../../base/ids.ts'
import type { Logger } from '../../base/logger.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { NotificationStatus } from '../../store/contract/notifications.ts'
import type { ThreadSnapshot } from '../../thread/stream/snapshot.ts'
import type { AgentThreadSubscription } from '../../thread/stream/subscription.ts'
import type { ThreadChange } from '../../thread/stream/thread-changes.ts'
import { requireResource, resolveResource } from '../auth/principal.ts'
import {
  isForbidden, memoryAgent, memoryQuery, scopeOf, threadIdOf, unlessForeign, type MemoryQuery,
} from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import { aborted, ticketIssued } from '../schema/response-schemas.ts'
import { flag, id, object, text, threadScope } from '../schema/schemas.ts'
import type { SideChannel } from '../sse/event-stream.ts'
import type { StreamedChunk } from '../sse/frames.ts'

interface SubscribeBody {
  threadId: string
  resourceId?: string
  after?: string
  snapshot?: boolean
  inbox?: boolean
  watches?: boolean
}

const cursor = {
  ...text, description: 'The cursor of the last chunk that was received: the stream continues after it, or begins with a snapshot.',
}
const inbox = {
  ...flag, description: 'Also sends the numbers of pending and unread notifications as `data-inbox`, without a cursor, when they change.',
}
const watches = { ...flag, description: 'Also sends what happens to the watches of the thread as `data-watch`, without a cursor.' }
const ticket = { ...text, description: 'A ticket for this thread, in place of other credentials.' }

export const subscriptions: readonly Route[] = [
  route<SubscribeBody>({
    method: 'POST', path: '/agents/:agentId/threads/subscribe', summary: 'Subscribes to a thread', response: 'events',
    body: object({ ...threadScope, after: cursor, snapshot: flag, inbox, watches }, ['threadId']),
    handle: (call) => subscribe(call, call.body, false),
  }),
  route<never, Omit<SubscribeBody, 'threadId'>>({
    method: 'GET', path: '/agents/:agentId/threads/:threadId/subscribe',
    summary: 'Subscribes to a thread, for EventSource: continues after Last-Event-ID', response: 'events', read: true, ticket: 'stream',
    query: object({ resourceId: id, after: cursor, snapshot: flag, inbox, watches, ticket }),
    handle(call) {
      const after = call.request.header('last-event-id') ?? call.query.after
      return subscribe(call, { ...call.query, threadId: threadIdOf(call), ...omitUndefined({ after }) }, true)
    },
  }),
  route<{ resourceId?: string }>({
    method: 'POST', path: '/agents/:agentId/threads/:threadId/ticket',
    summary: 'A ticket that opens the stream of the thread within a minute', response: 'json',
    responseSchema: ticketIssued, read: true, body: object({ resourceId: id }),
    // Also for a thread that does not exist or is of another resource: its stream stays silent.
    handle: (call) => {
      const target = { agentId: call.params.agentId ?? '', threadId: threadIdOf(call) }
      return call.tickets.issue(call.principal, requireResource(call.principal, call.body.resourceId), target, 'stream')
    },
  }),
  route<{ threadId: string; resourceId?: string; expectedRunId?: string; clearPendingSignals?: boolean }>({
    method: 'POST', path: '/agents/:agentId/threads/abort', summary: 'Aborts the active run of a thread', response: 'json',
    responseSchema: aborted, body: object({ ...threadScope, expectedRunId: id, clearPendingSignals: flag }, ['threadId']),
    handle(call) {
      const { expectedRunId, clearPendingSignals, threadId, resourceId } = call.body
      const scope = scopeOf(call.principal, threadId, resourceId)
      const aborting = call.agent.abortRun({ ...scope, ...omitUndefined({ expectedRunId, clearPendingSignals }) })
      return unlessForeign(call, aborting, () => ({ aborted: false }))
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET', path: '/events',
    summary: 'The threads of a resource that change: status, run, title and process of each, and those that are deleted',
    response: 'events', read: true, query: object(memoryQuery),
    async handle(call) {
      const resourceId = resolveResource(call.principal, call.query.resourceId)
      const changes = await (await memoryAgent(call)).site().threadChanges.open(resourceId)
      return call.events.respond(threadChunks(changes), { ids: false }, () => void changes.return?.())
    },
  }),
]

function threadChunks(changes: AsyncIterableIterator<ThreadChange>): AsyncIterable<StreamedChunk> {
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const { done, value } = await changes.next()
        return done ? { done, value: undefined } : { done: false, value: { type: 'data-thread', data: value } }
      },
    }),
  }
}

async function subscribe(call: Call<unknown, unknown>, body: SubscribeBody, ids: boolean): Promise<Response> {
  const { heed, agent, principal, events, gracePeriod } = call
  const { threadId, resourceId: requested, after, snapshot, watches } = body
  const target = { ...scopeOf(principal, threadId, requested), ...omitUndefined({ after, snapshot, watches }) }
  // A principal that may access all resources gets the actual error.
  const subscription = await (principal.resources === '*' ? agent.subscribeToThread(target) : subscribeUnprobed(agent, target))
  const { resourceId } = target
  const side = body.inbox && resourceId !== undefined ? inboxCounts(agent, { threadId, resourceId }, heed.logger) : undefined
  const release = () => gracePeriod.release(() => subscription.unsubscribe())
  return events.respond(subscription.stream, { ids, from: subscription.cursor }, release, side)
}

/**
 * Subscribes a caller that must not learn whether the thread exists. A thread of another resource looks like one that was never started:
 * its stream stays silent. So does the stream of a thread that another resource creates after the subscription.
 */
async function subscribeUnprobed(
  agent: Agent, target: Parameters<Agent['subscribeToThread']>[0],
): Promise<Pick<AgentThreadSubscription, 'stream' | 'cursor' | 'unsubscribe'>> {
  try {
    const { stream, cursor, unsubscribe } = await agent.subscribeToThread(target)
    return { stream: { [Symbol.asyncIterator]: () => new SilentWhenForbidden(stream[Symbol.asyncIterator]()) }, cursor, unsubscribe }
  } catch (error) {
    if (!isForbidden(error)) throw error
  }
  // A new id names no thread, so it behaves as a missing one for any options.
  const { stream, cursor, unsubscribe } = await agent.subscribeToThread({ ...target, threadId: newId() })
  return { stream: withThreadId(stream, target.threadId), cursor, unsubscribe }
}

class SilentWhenForbidden implements AsyncIterator<Chunk> {
  readonly #source: AsyncIterator<Chunk>
  readonly #returned = Promise.withResolvers<IteratorResult<Chunk>>()

  constructor(source: AsyncIterator<Chunk>) {
    this.#source = source
  }

  next(): Promise<IteratorResult<Chunk>> {
    return this.#source.next().catch((error: unknown) => {
      if (isForbidden(error)) return this.#returned.promise
      throw error
    })
  }

  async return(): Promise<IteratorResult<Chunk>> {
    this.#returned.resolve({ done: true, value: undefined })
    await this.#source.return?.()
    return { done: true, value: undefined }
  }
}

/** Puts the requested id into snapshots, which name their thread. */
async function* withThreadId(stream: AsyncIterable<Chunk>, threadId: string): AsyncGenerator<Chunk> {
  for await (const chunk of stream) {
    yield chunk.type === 'data-thread-snapshot' ? { ...chunk, data: { ...(chunk.data as ThreadSnapshot), threadId } } : chunk
  }
}

/** The data of a `data-inbox` chunk: how many notifications of a thread are in which state. */
interface InboxCounts {
  /** Not yet delivered. */
  pending: number
  /** Pending, or delivered and not marked as seen. */
  unread: number
  counts: Partial<Record<NotificationStatus, number>>
}

/**
 * Emits the counts of a thread's inbox, now and after each change. One count runs at a time, however fast the inbox changes, and equal
 * counts are emitted once.
 */
function inboxCounts(agent: Agent, scope: { threadId: string; resourceId: string }, logger: Logger): SideChannel {
  return (emit) => {
    let stopped = false
    let changed = true
    let lastJSON = ''
    let unsubscribe = () => {}

    const count = async () => {
      const store = await agent.site().inbox.store()
      while (changed && !stopped) {
        changed = false
        const counts = await store.countNotifications(scope)
        const data: InboxCounts = { pending: counts.pending ?? 0, unread: (counts.pending ?? 0) + (counts.delivered ?? 0), counts }
        const json = JSON.stringify(data)
        if (!stopped && json !== lastJSON) emit({ type: 'data-inbox', data } as StreamedChunk)
        lastJSON = json
      }
    }

    let counting: Promise<void> | undefined
    const recount = () => {
      changed = true
      counting ??= count().catch(warn).finally(() => (counting = undefined))
    }
    const warn = (error: unknown) => {
      if (!stopped) logger.warn('the inbox of a thread could not be counted', { threadId: scope.threadId, error: describe(error) })
    }
    const watch = async () => {
      const subscription = await agent.subscribeToInbox(scope)
      unsubscribe = () => subscription.unsubscribe()
      if (stopped) return unsubscribe()
      // Counted after the subscription is open, so that no change is missed.
      recount()
      for await (const _ of subscription.stream) recount()
    }
    watch().catch(warn)
    return () => {
      stopped = true
      unsubscribe()
    }
  }
}
