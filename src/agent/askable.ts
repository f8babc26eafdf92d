import type { JSONObject } from '../base/json.ts'
import type { AgentExecutionOptions, MemoryTarget } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { Send } from '../store/contract/threads.ts'
import type { Site } from '../heed/site.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'

/** What the functions of this folder need of an `Agent`. The class does not declare it: these members are not published. */
export interface Askable extends Runnable {
  site(): Site
  /** Its memory is a function of the request. */
  readonly storageDependsOnRequest: boolean
  threads(): ThreadRuntime
  /** The agent bound to the storage of a request. Another object only where its memory is a function of the request. */
  resolveStorage(requestContext?: RequestContext): Askable | Promise<Askable>
  /** Tags of its own signals: text that imitates one is escaped. */
  readonly signalTags: readonly string[]
  /** The fields of a new thread for the store; `workingMemory` of its metadata is stored as working memory. */
  describeThread(thread: { title?: string; metadata?: JSONObject }, options: AgentExecutionOptions): Promise<NonNullable<Send['thread']>>
  /** The thread of a call and the options of its memory: those of the call, over its default options. Undefined without a thread. */
  memoryOf(options: AgentExecutionOptions): MemoryTarget | undefined | Promise<MemoryTarget | undefined>
}
