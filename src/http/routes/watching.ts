import { aborted } from '../schema/answer-schemas.ts'
import { resourceOf, type Principal } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { flag, id, object, text, threadScope } from '../schema/schemas.ts'
import type { Streamed } from '../sse/frames.ts'
import { tellInbox } from '../sse/inbox-counts.ts'
import { subscribeUnseen } from './unseen-thread.ts'

interface Subscribe {
  threadId: string
  resourceId?: string
  after?: string
  snapshot?: boolean
  inbox?: boolean
}

const cursor = { ...text, description: 'The cursor of the last chunk that was seen: exactly what came after it follows, or a snapshot that says so.' }

const inbox = { ...flag, description: 'Also says how many notifications of the thread wait and are unread, whenever that changes, as `data-inbox` without a cursor.' }

export const watching: readonly Route[] = [
  route<Subscribe>({
    method: 'POST', path: '/agents/:agentId/threads/subscribe', summary: 'Watches a thread', answer: 'events',
    body: object({ ...threadScope, after: cursor, snapshot: flag, inbox }, ['threadId']),
    handle: (call) => subscribe(call, call.body, false),
  }),
  route<never, Omit<Subscribe, 'threadId'>>({
    method: 'GET', path: '/agents/:agentId/threads/:threadId/subscribe', summary: 'Watches a thread, for EventSource: goes on from Last-Event-ID', answer: 'events', read: true,
    query: object({ resourceId: id, after: cursor, snapshot: flag, inbox }),
    handle(call) {
      const after = call.asked.header('last-event-id') ?? call.query.after
      return subscribe(call, { ...call.query, threadId: call.params.threadId ?? '', ...(after === undefined ? {} : { after }) }, true)
    },
  }),
  route<{ threadId: string; resourceId?: string; expectedRunId?: string; clearPendingSignals?: boolean }>({
    method: 'POST', path: '/agents/:agentId/threads/abort', summary: 'Aborts what is active on a thread', answer: 'json', answers: aborted,
    body: object({ ...threadScope, expectedRunId: id, clearPendingSignals: flag }, ['threadId']),
    handle: ({ agent, body: { expectedRunId, clearPendingSignals, threadId, resourceId }, principal }) =>
      agent.abortRun({
        ...scopeOf(principal, threadId, resourceId),
        ...(expectedRunId === undefined ? {} : { expectedRunId }),
        ...(clearPendingSignals === undefined ? {} : { clearPendingSignals }),
      }),
  }),
]

async function subscribe({ heed, agent, principal, events, lingering }: Call<unknown, unknown>, { threadId, resourceId, after, snapshot, inbox: counted }: Subscribe, ids: boolean): Promise<Response> {
  const watched = { ...scopeOf(principal, threadId, resourceId), ...(after === undefined ? {} : { after }), ...(snapshot === undefined ? {} : { snapshot }) }
  // Whoever may reach everything is told what is wrong.
  const subscription = await (principal.resources === '*' ? agent.subscribeToThread(watched) : subscribeUnseen(agent, watched))
  const { resourceId: owner } = watched
  const beside = counted && owner !== undefined ? (tell: (chunk: Streamed) => void) => tellInbox(agent, { threadId, resourceId: owner }, tell, heed.logger) : undefined
  return events.respond(subscription.stream, { ids, from: subscription.cursor }, () => lingering.release(() => subscription.unsubscribe()), beside)
}

export function scopeOf(principal: Principal, threadId: string, resourceId: string | undefined): { threadId: string; resourceId?: string } {
  const resource = resourceOf(principal, resourceId)
  return { threadId, ...(resource === undefined ? {} : { resourceId: resource }) }
}
