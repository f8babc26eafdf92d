import type { AgentExecutionOptions, MemoryTarget } from '../run/options.ts'
import type { Runnable } from '../thread/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'

/** An agent, and where its threads live. */
export interface Askable extends Runnable {
  threads(): ThreadRuntime
  /** Tags of its own signals, which plain text may not imitate. */
  readonly signalTags: readonly string[]
  /** Where its own defaults say that a conversation is kept. */
  defaultMemory(options: AgentExecutionOptions): Promise<MemoryTarget | undefined>
}
