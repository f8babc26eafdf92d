import type { JSONObject, JSONValue } from '../json.ts'
import type { Chunk } from '../run/chunk.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../run/options.ts'
import type { RunResult } from '../run/run-result.ts'
import type { Runnable } from './runnable.ts'

/** What a run has only in this process: the caller that holds its stream, and options that are no JSON. */
export interface LocalCall {
  /** Absent for one that follows a run which has its options already. */
  options?: AgentExecutionOptions
  emit(chunk: Chunk): void
  resolve(result: RunResult): void
  reject(error: unknown): void
}

/** Options of the run: what was stored with it, and before that what the caller here gave. */
export function localOptions(stored: JSONObject, here: AgentExecutionOptions | undefined): AgentExecutionOptions {
  return { ...(stored as AgentExecutionOptions), ...here }
}

/** The options with what the agent's memory says for this request. Not a promise when that is always the same. */
export function withMemory(agent: Runnable, options: AgentExecutionOptions): AgentExecutionOptions | Promise<AgentExecutionOptions> {
  const finding = agent.memoryOptions?.(options)
  if (!finding) return options
  return finding.then((found) => ({ ...options, memory: { thread: '', ...options.memory, options: withHistory(found, options.memory?.options) } }))
}

/** What the call itself says of history takes the place of what was found. */
function withHistory(found: MemoryOptions, own: MemoryOptions = {}): MemoryOptions {
  return own.lastMessages === undefined && own.window === undefined ? { ...own, ...found } : own
}

/** The part of the options that survives this process. Functions, models, tools, signals and the request context don't. */
export function storableOptions(options: AgentExecutionOptions): JSONObject | undefined {
  const storable: JSONObject = {}
  for (const [key, value] of Object.entries(options)) {
    if (key === 'requestContext' || key === 'abortSignal' || key === 'structuredOutput') continue
    if (isJSON(value, 0)) storable[key] = value
  }
  return Object.keys(storable).length === 0 ? undefined : storable
}

function isJSON(value: unknown, depth: number): value is JSONValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth > 16) return false
  if (Array.isArray(value)) return value.every((item) => isJSON(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every((item) => item === undefined || isJSON(item, depth + 1))
}
