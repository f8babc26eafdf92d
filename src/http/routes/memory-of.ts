import type { Memory } from '../../memory/memory.ts'
import type { ResourceMemory } from '../../memory/scoped.ts'
import { HeedError } from '../../base/errors.ts'
import { resourceOf } from '../auth/principal.ts'
import type { Call } from '../route.ts'

export interface MemoryQuery {
  agentId?: string
  resourceId?: string
}

/** The memory of the agent that a request names, or of the first one: most servers have one storage for all. */
export async function memoryOf(call: Pick<Call<unknown, MemoryQuery>, 'heed' | 'query' | 'context'>): Promise<Memory> {
  const all = Object.values(call.heed.listAgents())
  const { agentId } = call.query
  const agent = agentId === undefined ? all[0] : all.find(({ id }) => id === agentId)
  if (!agent) throw new HeedError('unknown_agent', agentId === undefined ? 'This server has no agent.' : `There is no agent '${agentId}'.`, { details: { agentId } })
  const requestContext = await call.context()
  return agent.getMemory(requestContext ? { requestContext } : {})
}

/** A memory that reaches what the caller may reach, and nothing else. */
export async function ownMemory(call: Pick<Call<unknown, MemoryQuery>, 'heed' | 'query' | 'principal' | 'context'>, resourceId = call.query.resourceId): Promise<Memory | ResourceMemory> {
  const resource = resourceOf(call.principal, resourceId)
  const memory = await memoryOf(call)
  if (resource === undefined) return memory
  const own = memory.forResource(resource)
  return call.principal.resources === '*' ? own : own.uninstructing()
}
