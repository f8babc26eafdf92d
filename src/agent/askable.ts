import type { AgentInput } from '../message/input.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { Runnable } from '../thread/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'
import type { RunResult } from '../run/run-result.ts'
import type { Agent } from './agent.ts'
import type { AgentStream } from './stream.ts'

/** An agent, and where its threads live. */
export interface Askable extends Runnable {
  threads(): ThreadRuntime
  /** Tags of its own signals, which plain text may not imitate. */
  readonly signalTags: readonly string[]
}

/** The methods whose types don't depend on an agent's tools. */
type Common = Omit<Agent, 'generate' | 'stream' | 'generateLegacy' | 'streamLegacy' | 'approveToolCall' | 'declineToolCall' | 'resumeStream'>

/** Any agent, whatever its tools are: for functions that take one, and for lists of them. */
export interface AnyAgent extends Common {
  generate(messages: AgentInput, options?: AgentExecutionOptions<never>): Promise<RunResult<unknown, unknown, unknown>>
  stream(messages: AgentInput, options?: AgentExecutionOptions<never>): Promise<AgentStream<unknown, unknown, unknown>>
}
