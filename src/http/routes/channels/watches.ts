import { createHash } from 'node:crypto'
import { registerSame, type WatchDetails, type WatchInput, type WatchRecord } from '../../../agent/watches.ts'
import { HeedError, isHeedError } from '../../../base/errors.ts'
import type { WatchState } from '../../../watch/machine.ts'
import { watchInputSchema } from '../../../watch/criteria.ts'
import { requireResource, resolveResource } from '../../auth/principal.ts'
import { checkKeyMatchesId, keyReused, omitUndefined } from '../../request/fields.ts'
import { route, type Call, type Route } from '../../route.ts'
import * as responses from '../../schema/response-schemas.ts'
import { id, limit, object, threadScope } from '../../schema/schemas.ts'

interface NewWatch {
  id?: string
  threadId: string
  resourceId?: string
  watch: WatchInput
}

interface Owner {
  resourceId?: string
}

const all = '/agents/:agentId/watches'
const one = `${all}/:watchId`

export const watches: readonly Route[] = [
  route<NewWatch>({
    method: 'POST', path: all, summary: 'Waits for a message; a watch with the same id is returned as it is', response: 'json', send: true,
    responseSchema: responses.watch, creates: true,
    body: object({ ...threadScope, id, watch: watchInputSchema }, ['threadId', 'watch']),
    handle: registerWatch,
  }),
  route<never, Owner & { threadId?: string; state?: WatchState; limit?: number; after?: string }>({
    method: 'GET', path: all, summary: 'Watches, by id', response: 'json', read: true, responseSchema: responses.watchPage,
    query: object({ ...threadScope, state: { enum: ['open', 'ended'] }, limit, after: id }),
    handle: ({ agent, principal, query: { resourceId, ...rest } }) =>
      agent.listWatches({ ...rest, ...omitUndefined({ resourceId: resolveResource(principal, resourceId) }) }),
  }),
  route<never, Owner>({
    method: 'GET', path: one, summary: 'One watch, with the messages that were considered', response: 'json', read: true,
    responseSchema: responses.watchDetails,
    query: object({ resourceId: id }),
    handle: (call) => requireWatch(call, call.query.resourceId),
  }),
  route<never, Owner & { limit?: number; after?: number }>({
    method: 'GET', path: `${one}/explanation`, summary: 'Every message that a watch considered, and why it did or did not match',
    response: 'json', responseSchema: responses.explainedWatch, read: true,
    query: object({ resourceId: id, limit, after: { type: 'integer', minimum: 0 } }),
    async handle(call) {
      const { id: watchId, resourceId } = await requireWatch(call, call.query.resourceId)
      const { limit, after } = call.query
      return call.agent.explain({ watchId, resourceId, ...omitUndefined({ limit, after }) })
    },
  }),
  route<never, Owner>({
    method: 'DELETE', path: one, summary: 'Ends a watch; an ended one is returned as it is', response: 'json',
    responseSchema: responses.watch, query: object({ resourceId: id }),
    async handle(call) {
      const { id, resourceId } = await requireWatch(call, call.query.resourceId)
      return call.agent.cancelWatch({ id, resourceId })
    },
  }),
]

async function registerWatch({ agent, principal, body, idempotencyKey: key }: Call<NewWatch, unknown>): Promise<WatchRecord> {
  const { id, threadId, watch } = body
  const resourceId = requireResource(principal, body.resourceId)
  checkKeyMatchesId(key, id)
  const wanted = id ?? (key === undefined ? undefined : idFromKey(resourceId, key))
  const target = { threadId, resourceId, ...omitUndefined({ id: wanted }) }
  if (key === undefined) return agent.awaitSignal(watch, target)
  return registerSame(agent, watch, target).catch((error: unknown) => {
    throw isHeedError(error) && error.code === 'id_taken' ? keyReused() : error
  })
}

/** Ids of watches are unique in the store, keys only in a resource. */
function idFromKey(resourceId: string, key: string): string {
  return `key-${createHash('sha256').update(JSON.stringify([resourceId, key])).digest('hex').slice(0, 32)}`
}

/** A watch of this agent that the caller may access. */
async function requireWatch(
  { agent, principal, params: { watchId = '' } }: Call<unknown, unknown>, resourceId: string | undefined,
): Promise<WatchDetails> {
  const watch = await agent.getWatch({ id: watchId, ...omitUndefined({ resourceId: resolveResource(principal, resourceId) }) })
  if (!watch) throw new HeedError('not_found', `There is no watch ${watchId}.`, { details: { watchId } })
  return watch
}
