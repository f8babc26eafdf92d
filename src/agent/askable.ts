import type { JSONObject } from '../base/json.ts'
import type { AgentExecutionOptions, MemoryTarget } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { Send } from '../store/contract/threads.ts'
import type { Site } from '../heed/site.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** An agent, and the site of its threads. */
export interface Askable extends Runnable {
  site(): Site
  threads(): ThreadRuntime
  /** The agent bound to the storage of a request. Another object only where its memory is found for each request. */
  resolveStorage(requestContext?: RequestContext): Askable | Promise<Askable>
  /** Tags of its own signals, which plain text may not imitate. */
  readonly signalTags: readonly string[]
  /** A thread that is about to be created, as the store takes it: `workingMemory` of its metadata goes to working memory. */
  describeThread(thread: { title?: string; metadata?: JSONObject }, options: AgentExecutionOptions): Promise<NonNullable<Send['thread']>>
  /** Where its own defaults say that a conversation is kept. */
  defaultMemory(options: AgentExecutionOptions): Promise<MemoryTarget | undefined>
}
