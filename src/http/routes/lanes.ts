import { HeedError } from '../../base/errors.ts'
import { route, type Route } from '../route.ts'
import { id, limit, object } from '../schema/schemas.ts'
import { there } from './require-thread.ts'
import { scopeOf } from './watching.ts'

interface Owner {
  resourceId?: string
}

const all = '/agents/:agentId/threads/:threadId/lanes'

/** What a thread was told of the state of things. */
export const lanes: readonly Route[] = [
  route<never, Owner & { after?: string; limit?: number }>({
    method: 'GET', path: all, summary: 'The lanes of a thread, by id', answer: 'json', read: true, query: object({ resourceId: id, after: id, limit }),
    handle: async ({ agent, principal, params: { threadId = '' }, query: { resourceId, ...rest } }) => ({
      lanes: await agent.listLanes({ ...(await there(agent, scopeOf(principal, threadId, resourceId))), ...rest }),
    }),
  }),
  route<never, Owner>({
    method: 'GET', path: `${all}/:laneId`, summary: 'What a lane says now', answer: 'json', read: true, query: object({ resourceId: id }),
    async handle({ agent, principal, params: { threadId = '', laneId = '' }, query: { resourceId } }) {
      const lane = await agent.getLane({ ...(await there(agent, scopeOf(principal, threadId, resourceId))), id: laneId })
      if (!lane) throw new HeedError('not_found', `The thread has no lane ${laneId}.`, { details: { laneId } })
      return lane
    },
  }),
  route<never, Owner & { before?: number; limit?: number }>({
    method: 'GET', path: `${all}/:laneId/history`, summary: 'Everything that a lane was told, newest first', answer: 'json', read: true,
    query: object({ resourceId: id, before: { type: 'integer', minimum: 0 }, limit }),
    handle: async ({ agent, principal, params: { threadId = '', laneId = '' }, query: { resourceId, ...rest } }) =>
      agent.listLaneHistory({ ...(await there(agent, scopeOf(principal, threadId, resourceId))), ...rest, id: laneId }),
  }),
]
