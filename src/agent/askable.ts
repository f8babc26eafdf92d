import type { Runnable } from '../thread/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'

/** An agent, and where its threads live. */
export interface Askable extends Runnable {
  threads(): ThreadRuntime
  /** Tags of its own signals, which plain text may not imitate. */
  readonly signalTags: readonly string[]
}
