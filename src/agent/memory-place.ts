import { HeedError } from '../base/errors.ts'
import type { Site } from '../heed/site.ts'
import { Memory } from '../memory/memory.ts'
import type { MemoryBinding } from '../memory/bindings.ts'
import { RequestContext } from '../run/request-context.ts'
import { compileSchema, describeIssues } from '../schema/compile.ts'
import type { AgentConfig } from './config.ts'
import { resolve } from './resolve.ts'

/**
 * The memory of this request, where it is found for each. A context that the agent's schema doesn't allow is refused before the function is
 * asked: it would find the storage of nobody.
 */
export function memoryFor(config: AgentConfig, requestContext: RequestContext, agent: string): Memory | undefined | Promise<Memory | undefined> {
  const { memory } = config
  if (typeof memory !== 'function') return memory
  const ask = () => resolve(memory, { requestContext })
  const found = config.requestContextSchema === undefined ? ask() : checkContext(config, requestContext).then(ask)
  return found instanceof Promise ? found.then((one) => checked(one, agent)) : checked(found, agent)
}

function checked(memory: unknown, agent: string): Memory {
  if (memory instanceof Memory) return memory
  throw new HeedError('invalid_agent', `The function that finds the memory of agent '${agent}' must answer a Memory: () => new Memory({ … }).`, { details: { field: 'memory' } })
}

export async function checkContext(config: AgentConfig, requestContext: RequestContext): Promise<void> {
  if (config.requestContextSchema === undefined) return
  const valid = await compileSchema(config.requestContextSchema, 'requestContextSchema').validate(requestContext.all)
  if (!valid.ok) {
    throw new HeedError('invalid_request_context', `The request context is not valid: ${describeIssues(valid.issues)}`, { details: { issues: valid.issues } })
  }
}

/** The context of a call; that of the agent's own options where the call has none. */
export function contextOf(config: AgentConfig, given: RequestContext | undefined): RequestContext {
  const fixed = typeof config.defaultOptions === 'object' ? config.defaultOptions.requestContext : undefined
  return given ?? fixed ?? new RequestContext()
}

interface PlaceOfAgent {
  site(): Site
  /** The same, with its store open and the agent registered. */
  open(): Promise<Site>
  closed(): boolean
}

/** What a memory is bound to: the threads of its agent, wherever they are when it is used. */
export function memoryPlace({ site, open, closed }: PlaceOfAgent): MemoryBinding {
  return {
    store: async () => (await open()).threads.store,
    key: () => site().key,
    now: () => site().clock.now(),
    closed,
    storage: async () => (await open()).storage(),
    transferred: (threadId, resourceId) => site().threads.peers.transferred(threadId, resourceId),
  }
}
