import { HeedError } from '../../base/errors.ts'
import type { SignalState } from '../../machine.ts'
import { listThreadSignals } from '../../thread/control/inspect.ts'
import { existingScope, scopeOf, threadIdOf, unlessMissing } from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { id, ids, limit, object } from '../schema/schemas.ts'

interface Owner {
  resourceId?: string
}

const thread = '/agents/:agentId/threads/:threadId'
const lanes = `${thread}/lanes`
const query = object({ resourceId: id })
const states = { type: 'array', items: { enum: ['pending', 'taken', 'consumed', 'rejected', 'cancelled'] }, maxItems: 5 }
const body = object({ resourceId: id, signalIds: ids }, ['signalIds'])

/** The pending signals of a thread, its active run, and its lanes. */
export const threadState: readonly Route[] = [
  route<never, Owner>({
    method: 'GET', path: `${thread}/queue`, summary: 'The pending signals of a thread, in order', response: 'json', read: true, query,
    responseSchema: responses.queue,
    async handle(call) {
      const scope = scopeOf(call.principal, threadIdOf(call), call.query.resourceId)
      return { queued: await unlessMissing(call.agent.listQueued(scope), []) }
    },
  }),
  route<Owner & { signalIds: string[] }>({
    method: 'POST', path: `${thread}/queue/cancel`, summary: 'Removes signals from the queue', response: 'json', body,
    responseSchema: responses.cancelledSignals,
    async handle(call) {
      const { resourceId, signalIds } = call.body
      return { cancelledSignalIds: await call.agent.cancelQueued({ ...(await existingScope(call, resourceId)), signalIds }) }
    },
  }),
  route<Owner & { signalIds: string[] }>({
    method: 'POST', path: `${thread}/queue/reorder`, summary: 'Reorders queued messages', response: 'json', body,
    responseSchema: responses.reorderedSignals,
    async handle(call) {
      const { resourceId, signalIds } = call.body
      return { signalIds: await call.agent.reorderQueued({ ...(await existingScope(call, resourceId)), signalIds }) }
    },
  }),
  route<never, Owner & { state?: SignalState[]; limit?: number; before?: number }>({
    method: 'GET', path: `${thread}/signals`, summary: 'The signals of a thread, newest first, with what became of each', response: 'json',
    read: true, responseSchema: responses.signalPage,
    query: object({ resourceId: id, state: states, limit, before: { type: 'integer', minimum: 0 } }),
    async handle(call) {
      const { resourceId, state, limit = 100, before } = call.query
      const query = { limit, ...omitUndefined({ states: state, before }) }
      return listThreadSignals(call.agent.threads(), await existingScope(call, resourceId), query)
    },
  }),
  route<never, Owner>({
    method: 'GET', path: `${thread}/signals/:signalId`, summary: 'What became of a signal', response: 'json', read: true, query,
    responseSchema: responses.explainedSignal,
    async handle(call) {
      const { signalId = '' } = call.params
      const explained = await call.agent.explain({ ...(await existingScope(call, call.query.resourceId)), signalId })
      if (!explained) throw new HeedError('not_found', `The thread has no signal ${signalId}.`, { details: { signalId } })
      return explained
    },
  }),
  route<never, Owner>({
    method: 'GET', path: `${thread}/active-run`, summary: 'The run that is active or suspended', response: 'json', read: true, query,
    responseSchema: responses.activeRun,
    async handle(call) {
      const scope = scopeOf(call.principal, threadIdOf(call), call.query.resourceId)
      return { run: (await unlessMissing(call.agent.activeRun(scope), null)) ?? null }
    },
  }),
  route<never, Owner & { after?: string; limit?: number }>({
    method: 'GET',
    path: lanes,
    summary: 'The lanes of a thread, by id',
    response: 'json',
    responseSchema: responses.lanes,
    read: true,
    query: object({ resourceId: id, after: id, limit }),
    async handle(call) {
      const { resourceId, ...rest } = call.query
      return { lanes: await call.agent.listLanes({ ...(await existingScope(call, resourceId)), ...rest }) }
    },
  }),
  route<never, Owner>({
    method: 'GET',
    path: `${lanes}/:laneId`,
    summary: 'The current state of a lane',
    response: 'json',
    responseSchema: responses.lane,
    read: true,
    query,
    async handle(call) {
      const { laneId = '' } = call.params
      const lane = await call.agent.getLane({ ...(await existingScope(call, call.query.resourceId)), id: laneId })
      if (!lane) throw new HeedError('not_found', `The thread has no lane ${laneId}.`, { details: { laneId } })
      return lane
    },
  }),
  route<never, Owner & { before?: number; limit?: number }>({
    method: 'GET',
    path: `${lanes}/:laneId/history`,
    summary: 'The signals of a lane, newest first',
    response: 'json',
    responseSchema: responses.laneHistory,
    read: true,
    query: object({ resourceId: id, before: { type: 'integer', minimum: 0 }, limit }),
    async handle(call) {
      const { resourceId, ...rest } = call.query
      return call.agent.listLaneHistory({ ...(await existingScope(call, resourceId)), ...rest, id: call.params.laneId ?? '' })
    },
  }),
]
