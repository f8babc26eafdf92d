import { checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { InferInput, InferOutput, Schema } from '../schema/schema.ts'
import { allHooks } from '../processors/hooks.ts'
import type { Processor } from '../processors/processor.ts'
import type { RequestContext } from '../run/request-context.ts'
import { processorStep, type ProcessorStep } from './processor-step.ts'
import { makeStep, type Step, type StepConfig, type StepContext } from './step.ts'

/** An agent as a step calls it. */
export interface AgentLike<Id extends string = string> {
  readonly id: Id
  readonly description?: string | undefined
  generate(prompt: string, options: AgentStepCall): Promise<AgentAnswer>
}

interface AgentStepCall {
  requestContext: RequestContext
  abortSignal: AbortSignal
  structuredOutput?: { schema: Schema }
}

interface AgentAnswer {
  text: string
  object: unknown
  finishReason: string
  error?: Error | undefined
  tripwire?: { reason: string; processorId?: string } | undefined
}

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

const promptSchema: Schema = { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] }
const textSchema: Schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }

function agentStep(agent: AgentLike, structured: { schema: Schema } | undefined): Step<string, never, unknown, never> {
  return makeStep({
    id: agent.id,
    description: agent.description,
    inputSchema: promptSchema,
    outputSchema: structured?.schema ?? textSchema,
    async execute({ inputData, requestContext, abortSignal }: StepContext) {
      const { prompt } = inputData as { prompt: string }
      const answer = await agent.generate(prompt, { requestContext, abortSignal, ...(structured ? { structuredOutput: structured } : {}) })
      if (answer.tripwire) {
        throw new HeedError('tripwire', `${agent.id} refused: ${answer.tripwire.reason}`, {
          details: { reason: answer.tripwire.reason, processorId: answer.tripwire.processorId },
        })
      }
      if (answer.finishReason === 'suspended') {
        throw new HeedError(
          'step_failed',
          `Agent '${agent.id}' waits for a decision about a tool call, which a step can't wait for. Ask for it in a step of its own.`,
        )
      }
      if (answer.error) throw answer.error
      return structured ? answer.object : { text: answer.text }
    },
  })
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
      const asked = (context.suspendData as { type?: unknown } | undefined)?.type === 'approval'
      const { resumeData, ...unasked } = context
      const call = toolContext(asked ? unasked : context, id)
      if (asked && (resumeData as { approved?: unknown } | undefined)?.approved !== true)
        throw new HeedError('step_failed', `Tool '${id}' was declined.`)
      if (resumeData === undefined && (await tool.requireApproval?.(context.inputData as never, call as never)))
        return context.suspend({ type: 'approval', toolName: id, args: context.inputData })
      const result = execute.call(tool, context.inputData as never, call as never)
      if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result
      let last: unknown
      for await (const output of result as AsyncIterable<unknown>) context.writer.write((last = output))
      return last
    },
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
