import { HeedError } from '../../base/errors.ts'
import { route, type Route } from '../route.ts'
import { closed, id, ids, object } from '../schema/schemas.ts'
import { there } from './require-thread.ts'
import { scopeOf } from './watching.ts'

interface Owner {
  resourceId?: string
}

const query = object({ resourceId: id })
const body = closed({ resourceId: id, signalIds: ids }, ['signalIds'])

export const queue: readonly Route[] = [
  route<never, Owner>({
    method: 'GET', path: '/agents/:agentId/threads/:threadId/queue', summary: 'What waits on a thread, in its order', answer: 'json', read: true, query,
    handle: async ({ agent, params: { threadId = '' }, query: { resourceId }, principal }) => ({ queued: await agent.listQueued(await there(agent, scopeOf(principal, threadId, resourceId))) }),
  }),
  route<Owner & { signalIds: string[] }>({
    method: 'POST', path: '/agents/:agentId/threads/:threadId/queue/cancel', summary: 'Takes signals out of the queue', answer: 'json', body,
    handle: async ({ agent, params: { threadId = '' }, body: { resourceId, signalIds }, principal }) => ({
      cancelledSignalIds: await agent.cancelQueued({ ...(await there(agent, scopeOf(principal, threadId, resourceId))), signalIds }),
    }),
  }),
  route<Owner & { signalIds: string[] }>({
    method: 'POST', path: '/agents/:agentId/threads/:threadId/queue/reorder', summary: 'Puts queued messages in this order', answer: 'json', body,
    handle: async ({ agent, params: { threadId = '' }, body: { resourceId, signalIds }, principal }) => ({
      signalIds: await agent.reorderQueued({ ...(await there(agent, scopeOf(principal, threadId, resourceId))), signalIds }),
    }),
  }),
  route<never, Owner>({
    method: 'GET', path: '/agents/:agentId/threads/:threadId/signals/:signalId', summary: 'What happened to a signal', answer: 'json', read: true, query,
    async handle({ agent, params: { threadId = '', signalId = '' }, query: { resourceId }, principal }) {
      const explained = await agent.explain({ ...(await there(agent, scopeOf(principal, threadId, resourceId))), signalId })
      if (!explained) throw new HeedError('not_found', `The thread has no signal ${signalId}.`, { details: { signalId } })
      return explained
    },
  }),
  route<never, Owner>({
    method: 'GET', path: '/agents/:agentId/threads/:threadId/active-run', summary: 'The run that is active or suspended', answer: 'json', read: true, query,
    async handle({ agent, params: { threadId = '' }, query: { resourceId }, principal }) {
      const scope = scopeOf(principal, threadId, resourceId)
      return { run: (await agent.activeRun(scope)) ?? (await there(agent, scope), null) }
    },
  }),
]
