import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { MessageRow } from '../../message/row.ts'
import type { ProcessorPipeline } from '../../processors/pipeline.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import type { ContextSource } from './context-source.ts'
import type { ResolvedModel } from '../model/model.ts'
import type { AgentExecutionOptions } from '../options.ts'
import type { RequestContext } from '../request-context.ts'
import type { StructuredOutput } from '../output/structured-output.ts'
import type { ToolSet } from '../tools/tool-set.ts'
import type { Transformer } from '../tools/transform.ts'

/** What a run is given. Everything is resolved: no function of the request context is left in it. */
export interface RunSetup {
  id: string
  agent: { id: string; name: string }
  threadId?: string
  resourceId?: string
  requestContext: RequestContext
  options: AgentExecutionOptions
  models: ResolvedModel[]
  system: SystemMessage[]
  tools: ToolSet
  structured: StructuredOutput | undefined
  processors: ProcessorPipeline
  /** What the model is to know besides the conversation, in the order in which it is shown. */
  context: readonly ContextSource[]
  transformer: Transformer
  reservedTags: readonly string[]
  /** Absent unless somebody traces. */
  trace?: RunTrace | undefined
  clock: Clock
  logger: Logger
  newId(): string
  /** History and input, oldest first. */
  rows: MessageRow[]
  /** How many of the last rows are new input. */
  inputCount: number
  /** The number of steps that an earlier process did of this run. */
  stepsDone: number
}
