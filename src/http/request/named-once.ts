import { refused } from '../../base/arguments.ts'
import { isPlainObject } from '../../base/json.ts'
import type { Route } from '../route.ts'
import type { RequestCall } from './call.ts'

/**
 * Rejects a request that names its thread, or the resource of its thread, by different ids in different places: policies and processors
 * would be asked about one of them, and the route would use the other.
 */
export function checkNamedOnce({ path }: Route, { params, query, body }: RequestCall): void {
  const memory = isPlainObject(body.memory) ? body.memory : {}
  const thread = isPlainObject(memory.thread) ? memory.thread.id : memory.thread
  checkSame('threadId', { path: params.threadId, query: query.threadId, body: body.threadId, memory: thread })
  // The body of a transfer names the resource that gets the thread.
  const owner = path === '/memory/threads/:threadId/transfer' ? undefined : body.resourceId
  checkSame('resourceId', { query: query.resourceId, body: owner, memory: memory.resource })
}

function checkSame(field: string, places: Readonly<Record<string, unknown>>): void {
  const named = Object.entries(places).filter(([, id]) => id !== undefined)
  const [first, ...others] = named
  const other = others.find(([, id]) => id !== first?.[1])
  if (first && other) throw refused(field, `the same in all places that name it: here it is different in ${first[0]} and ${other[0]}`)
}
