import type { Clock } from '../../base/clock.ts'
import type { JSONObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { MessageRow } from '../../message/row.ts'
import type { ProcessorPipeline } from '../../processors/pipeline.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import type { ResolvedModel } from '../model/model.ts'
import type { AgentExecutionOptions } from '../options.ts'
import type { StructuredOutput } from '../output/structured-output.ts'
import type { RequestContext } from '../request-context.ts'
import type { ToolSet } from '../tools/tool-set.ts'
import type { ToolPayloadTransformPolicy } from '../tools/transform.ts'

/** The input of a run. Everything is resolved: it has no functions of the request context. */
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
  /** The sources of context rows, in the order in which their rows enter the prompt. */
  context: readonly ContextSource[]
  /** The agent's rule for the payloads of its tools. */
  transform: ToolPayloadTransformPolicy | undefined
  reservedTags: readonly string[]
  /** Absent when tracing is off. */
  trace?: RunTrace | undefined
  clock: Clock
  logger: Logger
  newId(): string
  /** History and input, oldest first. */
  rows: MessageRow[]
  /** How many of the last rows are new input. */
  inputCount: number
  /** The number of steps of this run that an earlier process committed. */
  stepsDone: number
}

/**
 * A source of context rows. Called before every model call with the rows of the prompt; the block that it returns is stored as a
 * context row before the call, added to the end of the prompt, and stays there. Readers of the thread don't see it.
 */
export type ContextSource = (rows: readonly MessageRow[]) => Promise<ContextBlock | undefined>

export interface ContextBlock {
  text: string
  /** Stored with the row. `sources`: the ids of quoted messages of the thread, `quotes`: of other threads. It is deleted with them. */
  metadata: JSONObject
  /** The quoted messages with their text. If one has changed when the block is stored, the block is left out. */
  quoted?: ReadonlyArray<{ threadId: string; messageId: string; text: string }>
}
