import type { Chunk } from '../../run/chunk.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import type { RunResult } from '../../run/output/run-result.ts'
import type { Context } from '../../tracing/open-telemetry.ts'
import type { Runnable } from '../runtime/runnable.ts'

/** What a run has only in this process: the caller that holds its stream, and options that are no JSON. */
export interface LocalCall {
  /** Absent for one that follows a run which has its options already. */
  options?: AgentExecutionOptions
  /** What was open where the call was made, when somebody traces. */
  from?: Context | undefined
  emit(chunk: Chunk): void
  resolve(result: RunResult): void
  reject(error: unknown): void
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
