import { isStorable, type JSONObject } from '../../base/json.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import { RequestContext } from '../../run/request-context.ts'
import type { CallScorers } from '../../scorers/contract.ts'
import type { Send } from '../../store/contract/threads.ts'
import type { Runnable } from '../runtime/runnable.ts'

/** The title and the metadata that the options of a run set on its thread. */
export function threadFields(agent: Runnable, options: AgentExecutionOptions): Promise<NonNullable<Send['thread']>> | undefined {
  const thread = options.memory?.thread
  if (typeof thread !== 'object' || (thread.title === undefined && thread.metadata === undefined)) return undefined
  const { id: _, ...fields } = thread
  return agent.describeThread?.(fields, options)
}

const contextPrefix = 'requestContext.'

/** The keys of the request context among the names of lost options. */
export function lostContext(lost: readonly string[]): string[] {
  return lost.filter((name) => name.startsWith(contextPrefix)).map((name) => name.slice(contextPrefix.length))
}

/**
 * The part of a run's options that is stored: JSON values, those of the request context included; under `bound`, the names of the options
 * that only this process has; under `window`, the window of the run where it differs from the agent's.
 */
export function storedOptions(agent: Runnable, options: AgentExecutionOptions): JSONObject | undefined {
  const storable: JSONObject = {}
  const bound: string[] = []
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || key === 'requestContext' || key === 'abortSignal') continue
    const plain: unknown = key === 'scorers' ? scorersById(value as CallScorers) : value
    if (isStorable(plain)) storable[key] = plain
    else bound.push(key)
  }
  const context: JSONObject = {}
  for (const [key, value] of options.requestContext?.entries() ?? []) {
    if (isStorable(value)) context[key] = value
    else if (value !== undefined) bound.push(contextPrefix + key)
  }
  if (Object.keys(context).length > 0) storable.requestContext = context
  if (bound.length > 0) storable.bound = bound
  const { lastMessages, window } = options.memory?.options ?? {}
  if (lastMessages !== undefined || window !== undefined) storable.window = agent.window(options)
  return Object.keys(storable).length === 0 ? undefined : storable
}

interface RestoredOptions {
  options: AgentExecutionOptions
  /** The names of options that were passed with the run and are lost. */
  lost: string[]
}

/** The options of a run: those that this process has, else the stored ones. */
export function restoreOptions(stored: JSONObject, here: AgentExecutionOptions | undefined): RestoredOptions {
  const { bound, requestContext, window: _, ...options } = stored
  const context =
    typeof requestContext === 'object' && requestContext !== null
      ? { requestContext: new RequestContext(requestContext as JSONObject) }
      : {}
  return {
    options: { ...(options as AgentExecutionOptions), ...context, ...here },
    lost: !here && Array.isArray(bound) ? bound.filter((name) => typeof name === 'string') : [],
  }
}

/** Another process finds the scorers of a call by their ids. */
function scorersById(scorers: CallScorers): unknown {
  return Object.fromEntries(Object.entries(scorers).map(([name, entry]) =>
    [name, entry && { ...entry, scorer: typeof entry.scorer === 'string' ? entry.scorer : entry.scorer.id }]))
}

/** The options with the memory options of this request. A window that the call itself sets takes precedence. */
export function withMemoryOptions(options: AgentExecutionOptions, found: MemoryOptions): AgentExecutionOptions {
  const own = options.memory?.options ?? {}
  const merged = own.lastMessages === undefined && own.window === undefined ? { ...own, ...found } : own
  return { ...options, memory: { thread: '', ...options.memory, options: merged } }
}

/** The options with the memory options that the agent resolves for this request, where they depend on it. */
export async function resolveMemoryOptions(agent: Runnable, options: AgentExecutionOptions): Promise<AgentExecutionOptions> {
  const memory = agent.memoryOptions?.(options)
  return memory ? withMemoryOptions(options, await memory) : options
}
