import { checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { InferInput, InferOutput, Schema } from '../schema/schema.ts'
import { allHooks } from '../processors/hooks.ts'
import type { Processor } from '../processors/processor.ts'
import { agentStep, approvalSchema, asksForApproval, type AgentLike } from './agent-step.ts'
import { processorStep, type ProcessorStep } from './processor-step.ts'
import { makeStep, stepHooks, type Step, type StepConfig, type StepContext } from './step.ts'

/** A tool as a step calls it. */
export interface ToolLike<Id extends string = string, Input = never, Output = unknown> {
  readonly id: Id
  readonly description?: string | undefined
  readonly inputSchema?: Schema | undefined
  readonly outputSchema?: Schema | undefined
  readonly suspendSchema?: Schema | undefined
  readonly resumeSchema?: Schema | undefined
  readonly idempotent?: boolean | undefined
  readonly timeoutMs?: number | undefined
  execute?(input: Input, context: never): Output | Promise<Output> | AsyncIterable<Output>
  requireApproval?(input: Input, context: never): boolean | Promise<boolean>
}

/** A step from a function: `createStep({ id, inputSchema, outputSchema, execute })`. */
export function createStep<
  const Id extends string, InputSchema extends Schema = Schema, OutputSchema extends Schema = Schema, StateSchema extends Schema = Schema,
  SuspendSchema extends Schema = Schema, ResumeSchema extends Schema = Schema,
>(
  config: StepConfig<Id, InputSchema, OutputSchema, StateSchema, SuspendSchema, ResumeSchema>,
): Step<Id, InferInput<InputSchema>, InferOutput<OutputSchema>, InferOutput<StateSchema>>
/** A step that asks an agent: from `{ prompt }` to `{ text }`, or to the value of `structuredOutput`. */
export function createStep<const Id extends string, OutputSchema extends Schema>(
  agent: AgentLike<Id>, options: { structuredOutput: { schema: OutputSchema } },
): Step<Id, { prompt: string }, InferOutput<OutputSchema>, unknown>
export function createStep<const Id extends string>(
  agent: AgentLike<Id>,
): Step<Id, { prompt: string }, { text: string }, unknown>
/** A step that calls a tool. */
export function createStep<const Id extends string, Input, Output>(
  tool: ToolLike<Id, Input, Output>,
): Step<Id, Input, Awaited<Output>, unknown>
/** A step that calls a processor, for workflows in `inputProcessors` and `outputProcessors`. Its id is `processor:<id>`. */
export function createStep<const Id extends string>(processor: Processor<Id>): ProcessorStep<Id>
export function createStep(from: unknown, options?: { structuredOutput: { schema: Schema } }): Step<string, never, unknown, never> {
  if (!isObject(from)) throw refused('createStep()', 'called with the parameters of a step, an agent, a tool or a processor')
  if (options !== undefined) {
    checkNames('createStep()', options, ['structuredOutput'])
    checkNames('structuredOutput', options.structuredOutput, ['schema'])
  }
  if (typeof from.generate === 'function') return agentStep(from as unknown as AgentLike, options?.structuredOutput)
  if (options !== undefined) throw refused('createStep()', 'called without options, unless for an agent')
  if ((from as Record<symbol, unknown>)[Symbol.for('heed.tool')] === true) return toolStep(from as unknown as ToolLike)
  if (typeof from.execute === 'function') return makeStep(from)
  if (allHooks.some((hook) => hook in from)) return processorStep(from as unknown as Processor)
  return makeStep(from)
}

function toolStep(tool: ToolLike): Step<string, never, unknown, never> {
  const { id, execute } = tool
  if (!execute) throw new HeedError('invalid_workflow', `Tool '${id}' has no execute: a client would run it. Use a tool with one.`)
  return makeStep({
    id,
    description: tool.description,
    inputSchema: tool.inputSchema,
    outputSchema: tool.outputSchema,
    suspendSchema: tool.suspendSchema,
    resumeSchema: tool.resumeSchema,
    idempotent: tool.idempotent,
    timeoutMs: tool.timeoutMs,
    async execute(context: StepContext) {
      const asked = asksForApproval(context.suspendData)
      const { resumeData, ...unasked } = context
      const call = toolContext(asked ? unasked : context, id)
      const { approved, reason = '' } = (resumeData ?? {}) as { approved?: boolean; reason?: string }
      if (asked && approved !== true) throw new HeedError('step_failed', `Tool '${id}' was declined${reason && `: ${reason}`}.`)
      if (resumeData === undefined && (await tool.requireApproval?.(context.inputData as never, call as never)))
        return context.suspend({ type: 'approval', toolName: id, args: context.inputData })
      const result = execute.call(tool, context.inputData as never, call as never)
      if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result
      let last: unknown
      for await (const output of result as AsyncIterable<unknown>) context.writer.write((last = output))
      return last
    },
    [stepHooks]: { resumeSchema: (suspended) => (asksForApproval(suspended) ? approvalSchema : tool.resumeSchema) },
  })
}

function toolContext(context: StepContext, toolName: string): Record<string, unknown> {
  const { stepKey, runId, workflowId, abortSignal, requestContext, resumeData, resourceId, writer } = context
  return {
    toolCallId: stepKey, toolName, runId, agentId: `workflow:${workflowId}`, abortSignal, requestContext, taintedBy: [], messages: [],
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(resumeData === undefined ? {} : { resumeData }),
    suspend: (payload: unknown) => context.suspend(payload),
    write: (part: unknown) => writer.write(part),
    report: (output: unknown) => writer.write(output),
    sendSignal: () => Promise.reject(
      new HeedError('no_active_run', `Tool '${toolName}' runs as a step of a workflow: no model reads its signals.`),
    ),
  }
}
