import { expectList, expectObject, plainProcessors, resolve, type AgentConfig } from '../config.ts'
import { HeedError } from '../../base/errors.ts'
import type { Site } from '../../heed/site.ts'
import { Memory, type MemoryBinding } from '../../memory/memory.ts'
import { historyOption, windowOf } from '../../memory/options.ts'
import { historyIn } from '../../memory/processors.ts'
import type { Processor } from '../../processors/processor.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import { RequestContext } from '../../run/request-context.ts'
import type { Window } from '../../store/contract/threads.ts'
import { compileSchema, describeIssues } from '../../schema/compile.ts'

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

/** The keys that `requestContextSchema` names. */
export async function declaredKeys({ requestContextSchema }: AgentConfig): Promise<readonly string[]> {
  if (requestContextSchema === undefined) return []
  const { properties } = await compileSchema(requestContextSchema, 'requestContextSchema').jsonSchema()
  return Object.keys(properties ?? {})
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

const keys = ['inputProcessors', 'outputProcessors'] as const

/** The processors that are the same for every request. */
export function staticProcessors(config: AgentConfig): Array<readonly Processor[] | undefined> {
  return keys.map((key) => (typeof config[key] === 'function' ? undefined : config[key]))
}

/** The window of the agent's static configuration, or of the options of a call. */
export function windowOfAgent(config: AgentConfig, options?: MemoryOptions): Window {
  const { memory, defaultOptions } = config
  const defaults = typeof defaultOptions === 'object' ? defaultOptions : {}
  const lists = staticProcessors(config).map((list, index) => defaults[keys[index] ?? 'inputProcessors'] ?? list)
  return windowOf(historyOption(memory instanceof Memory ? memory.options : undefined, historyIn(lists), defaults.memory?.options, options))
}

/** Whether a function of the agent decides about history for each request. */
export function dependsOnRequest(config: AgentConfig): boolean {
  return (['memory', 'defaultOptions', ...keys] as const).some((key) => typeof config[key] === 'function')
}

/**
 * The history options of a call, where they depend on its options or on functions of the agent. Resolved at the send: the transaction that
 * begins a run cannot wait for them.
 */
export async function historyOptionsOfCall(agent: string, config: AgentConfig, options: AgentExecutionOptions): Promise<MemoryOptions> {
  const context = { requestContext: options.requestContext ?? new RequestContext() }
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, context)
  const defaults = config.defaultOptions ? expectObject(await resolve(config.defaultOptions, context), 'defaultOptions', agent) : {}
  const lists = await Promise.all(
    keys.map(
      async (key) => {
        const own = options[key] ?? defaults[key] ?? config[key] ?? []
        return plainProcessors(expectList(await resolve<Processor[]>(own, context), key, agent))
      },
    ),
  )
  const fixed: unknown[] = staticProcessors(config).flatMap((list) => list ?? [])
  for (const processor of lists.flat()) {
    if (processor.id === 'message-history' && 'storage' in processor && processor.storage && !fixed.includes(processor))
      throw noStorage(agent)
  }
  return historyOption(memory?.options, historyIn(lists), defaults.memory?.options)
}

function noStorage(agent: string): HeedError {
  const why = `The MessageHistory of agent '${agent}' is resolved for each request and cannot have its own storage.`
  return new HeedError(
    'unsupported_option',
    `${why} Pass the storage to the memory, which may be a function of the request, or to the Heed.`,
    { details: { option: 'storage' } },
  )
}
