import type { Runnable } from '../thread/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'

/** An agent, and where its threads live. */
export interface Askable extends Runnable {
  threads(): ThreadRuntime
}
