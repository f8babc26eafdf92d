import { refused } from '../../base/arguments.ts'
import { isPlainObject } from '../../base/json.ts'
import type { Route } from '../route.ts'
import type { RequestCall } from './call.ts'

/**
 * Rejects a request that names its agent, its thread, or the resource of its thread, by different ids in different places: policies and
 * processors would be asked about one of them, and the route would use the other.
 */
export function checkNamedOnce({ path }: Route, { params, query, body, request }: RequestCall): void {
  // Every route accepts these two in its query: existing clients add them.
  const { agentId = inQuery(request.search, 'agentId'), resourceId = inQuery(request.search, 'resourceId') } = query
  checkSame('agentId', { path: params.agentId, query: agentId })
  const memory = isPlainObject(body.memory) ? body.memory : {}
  const thread = isPlainObject(memory.thread) ? memory.thread.id : memory.thread
  checkSame('threadId', { path: params.threadId, query: query.threadId, body: body.threadId, memory: thread })
  // The body of a transfer names the resource that gets the thread.
  const owner = path === '/memory/threads/:threadId/transfer' ? undefined : body.resourceId
  checkSame('resourceId', { query: resourceId, body: owner, memory: memory.resource })
}

/** A parameter of the query, also on a route whose schema does not have it. */
export function inQuery(search: string, name: string): string | undefined {
  return search === '' ? undefined : (new URLSearchParams(search).get(name) ?? undefined)
}

function checkSame(field: string, places: Readonly<Record<string, unknown>>): void {
  const named = Object.entries(places).filter(([, id]) => id !== undefined)
  const [first, ...others] = named
  const other = others.find(([, id]) => id !== first?.[1])
  if (first && other) throw refused(field, `the same in all places that name it: here it is different in ${first[0]} and ${other[0]}`)
}
