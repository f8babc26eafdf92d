import { HeedError } from '../../base/errors.ts'
import { existingScope } from '../request/access.ts'
import { route, type Route } from '../route.ts'
import { id, limit, object } from '../schema/schemas.ts'

interface Owner {
  resourceId?: string
}

const all = '/agents/:agentId/threads/:threadId/lanes'

/** The lanes of a thread: the state that state signals set. */
export const lanes: readonly Route[] = [
  route<never, Owner & { after?: string; limit?: number }>({
    method: 'GET',
    path: all,
    summary: 'The lanes of a thread, by id',
    response: 'json',
    read: true,
    query: object({ resourceId: id, after: id, limit }),
    async handle(call) {
      const { resourceId, ...rest } = call.query
      return { lanes: await call.agent.listLanes({ ...(await existingScope(call, resourceId)), ...rest }) }
    },
  }),
  route<never, Owner>({
    method: 'GET',
    path: `${all}/:laneId`,
    summary: 'The current state of a lane',
    response: 'json',
    read: true,
    query: object({ resourceId: id }),
    async handle(call) {
      const { laneId = '' } = call.params
      const lane = await call.agent.getLane({ ...(await existingScope(call, call.query.resourceId)), id: laneId })
      if (!lane) throw new HeedError('not_found', `The thread has no lane ${laneId}.`, { details: { laneId } })
      return lane
    },
  }),
  route<never, Owner & { before?: number; limit?: number }>({
    method: 'GET',
    path: `${all}/:laneId/history`,
    summary: 'The signals of a lane, newest first',
    response: 'json',
    read: true,
    query: object({ resourceId: id, before: { type: 'integer', minimum: 0 }, limit }),
    async handle(call) {
      const { resourceId, ...rest } = call.query
      return call.agent.listLaneHistory({ ...(await existingScope(call, resourceId)), ...rest, id: call.params.laneId ?? '' })
    },
  }),
]
