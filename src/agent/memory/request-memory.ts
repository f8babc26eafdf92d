import { HeedError } from '../../base/errors.ts'
import type { Site } from '../../heed/site.ts'
import { Memory } from '../../memory/memory.ts'
import type { MemoryBinding } from '../../memory/bindings.ts'
import { RequestContext } from '../../run/request-context.ts'
import { compileSchema, describeIssues } from '../../schema/compile.ts'
import { resolve, type AgentConfig } from '../config.ts'

/**
 * The memory of a request. The request context is validated before the function of the agent is called: an invalid context could select
 * another tenant's storage.
 */
export function resolveMemory(
  config: AgentConfig,
  requestContext: RequestContext,
  agent: string,
): Memory | undefined | Promise<Memory | undefined> {
  const { memory } = config
  if (typeof memory !== 'function') return memory
  const call = () => resolve(memory, { requestContext })
  const found = config.requestContextSchema === undefined ? call() : validateRequestContext(config, requestContext).then(call)
  return found instanceof Promise ? found.then((one) => checked(one, agent)) : checked(found, agent)
}

function checked(memory: unknown, agent: string): Memory {
  if (memory instanceof Memory) return memory
  throw new HeedError('invalid_agent', `The function 'memory' of agent '${agent}' must return a Memory: () => new Memory({ … }).`, {
    details: { field: 'memory' },
  })
}

export async function validateRequestContext(config: AgentConfig, requestContext: RequestContext): Promise<void> {
  if (config.requestContextSchema === undefined) return
  const valid = await compileSchema(config.requestContextSchema, 'requestContextSchema').validate(requestContext.all)
  if (!valid.ok) {
    throw new HeedError('invalid_request_context', `The request context is not valid: ${describeIssues(valid.issues)}`, {
      details: { issues: valid.issues },
    })
  }
}

/** The context of a call; where it has none, that of the agent's default options. */
export function contextOf(config: AgentConfig, given: RequestContext | undefined): RequestContext {
  const fixed = typeof config.defaultOptions === 'object' ? config.defaultOptions.requestContext : undefined
  return given ?? fixed ?? new RequestContext()
}

interface AgentStorage {
  site(): Site
  /** The same, with its store open and the agent registered. */
  open(): Promise<Site>
  closed(): boolean
}

/** Binds a memory to the threads of its agent; the storage is resolved at each use. */
export function memoryPlace({ site, open, closed }: AgentStorage): MemoryBinding {
  return {
    store: async () => (await open()).threads.store,
    key: () => site().key,
    now: () => site().clock.now(),
    closed,
    storage: async () => (await open()).storage(),
    transferred: (threadId, resourceId) => site().threads.peers.transferred(threadId, resourceId),
  }
}
