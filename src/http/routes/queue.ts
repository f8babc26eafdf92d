import { HeedError } from '../../base/errors.ts'
import { existingScope, scopeOf, threadIdOf } from '../request/access.ts'
import { route, type Route } from '../route.ts'
import { closed, id, ids, object } from '../schema/schemas.ts'

interface Owner {
  resourceId?: string
}

const thread = '/agents/:agentId/threads/:threadId'
const query = object({ resourceId: id })
const body = closed({ resourceId: id, signalIds: ids }, ['signalIds'])

/** The pending signals of a thread, and its active run. */
export const queue: readonly Route[] = [
  route<never, Owner>({
    method: 'GET', path: `${thread}/queue`, summary: 'The pending signals of a thread, in order', response: 'json', read: true, query,
    handle: async (call) => ({ queued: await call.agent.listQueued(await existingScope(call, call.query.resourceId)) }),
  }),
  route<Owner & { signalIds: string[] }>({
    method: 'POST', path: `${thread}/queue/cancel`, summary: 'Removes signals from the queue', response: 'json', body,
    async handle(call) {
      const { resourceId, signalIds } = call.body
      return { cancelledSignalIds: await call.agent.cancelQueued({ ...(await existingScope(call, resourceId)), signalIds }) }
    },
  }),
  route<Owner & { signalIds: string[] }>({
    method: 'POST', path: `${thread}/queue/reorder`, summary: 'Reorders queued messages', response: 'json', body,
    async handle(call) {
      const { resourceId, signalIds } = call.body
      return { signalIds: await call.agent.reorderQueued({ ...(await existingScope(call, resourceId)), signalIds }) }
    },
  }),
  route<never, Owner>({
    method: 'GET', path: `${thread}/signals/:signalId`, summary: 'What became of a signal', response: 'json', read: true, query,
    async handle(call) {
      const { signalId = '' } = call.params
      const explained = await call.agent.explain({ ...(await existingScope(call, call.query.resourceId)), signalId })
      if (!explained) throw new HeedError('not_found', `The thread has no signal ${signalId}.`, { details: { signalId } })
      return explained
    },
  }),
  route<never, Owner>({
    method: 'GET', path: `${thread}/active-run`, summary: 'The run that is active or suspended', response: 'json', read: true, query,
    async handle(call) {
      const { resourceId } = call.query
      const run = await call.agent.activeRun(scopeOf(call.principal, threadIdOf(call), resourceId))
      if (!run) await existingScope(call, resourceId)
      return { run: run ?? null }
    },
  }),
]
