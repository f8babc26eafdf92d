import type { JSONObject } from '../../base/json.ts'
import type { ModelToolOutput, ProviderOptions } from '../../message/message.ts'
import type { Schema } from '../../schema/schema.ts'
import { createTool, type InputContext, type Tool } from './tool.ts'

/** A tool of the `ai` package, or of an MCP client that uses its shape. An agent accepts it unchanged. */
export interface AISDKTool {
  type?: 'function' | 'dynamic' | undefined
  description?: string | ((options: never) => string)
  inputSchema: unknown
  outputSchema?: unknown
  execute?(input: never, options: never): unknown
  toModelOutput?(options: never): unknown
  needsApproval?: unknown
  strict?: boolean
  inputExamples?: Array<{ input: unknown }>
  providerOptions?: unknown
}

/** A tool that a provider defines: it executes it, such as its web search, or Heed does, such as its shell. */
export interface ProviderTool {
  type: 'provider' | 'provider-defined'
  id: `${string}.${string}`
  args: Record<string, unknown>
  isProviderExecuted?: boolean
  inputSchema?: unknown
  execute?(input: never, options: never): unknown
  toModelOutput?(options: never): unknown
  needsApproval?: unknown
}

export function isProviderTool(value: unknown): value is ProviderTool {
  if (typeof value !== 'object' || value === null) return false
  const { type, id } = value as Partial<ProviderTool>
  return (type === 'provider' || type === 'provider-defined') && typeof id === 'string'
}

/** True for a provider's tool that Heed executes. */
export function isExecutedHere({ isProviderExecuted, execute }: ProviderTool): boolean {
  return isProviderExecuted === false || (isProviderExecuted === undefined && typeof execute === 'function')
}

export function isAISDKTool(value: unknown): value is AISDKTool {
  return typeof value === 'object' && value !== null && 'inputSchema' in value
}

interface Executable extends Pick<AISDKTool, 'strict' | 'inputExamples' | 'providerOptions'> {
  execute?(input: unknown, options: object): unknown
  toModelOutput?(options: object): ModelToolOutput | Promise<ModelToolOutput>
  needsApproval?: boolean | ((input: unknown, options: object) => boolean | Promise<boolean>)
  description?: string | ((options: object) => string)
  onInputStart?(options: object): void | PromiseLike<void>
  onInputDelta?(options: object): void | PromiseLike<void>
  onInputAvailable?(options: object): void | PromiseLike<void>
}

export function aiSDKTool(name: string, source: AISDKTool | ProviderTool): Tool {
  const { execute, toModelOutput, needsApproval, description, strict, inputExamples, providerOptions } = source as Executable
  const inputHook = (name: 'onInputStart' | 'onInputDelta' | 'onInputAvailable') => {
    const hook = (source as Executable)[name]
    return hook && { [name]: async (event: InputContext) => hook.call(source, { ...event, ...aiSDKOptions(event) }) }
  }
  return createTool({
    id: name,
    description: typeof description === 'function' ? description({ context: {} }) : description,
    inputSchema: source.inputSchema as Schema | undefined,
    strict,
    inputExamples: inputExamples as Array<{ input: JSONObject }> | undefined,
    providerOptions: providerOptions as ProviderOptions | undefined,
    requireApproval: typeof needsApproval === 'function'
      ? (input, { toolCallId, messages, requestContext }) => needsApproval(input, { toolCallId, messages, context: requestContext })
      : needsApproval,
    execute: execute && ((input, context) => execute.call(source, input, aiSDKOptions(context))),
    ...inputHook('onInputStart'),
    ...inputHook('onInputDelta'),
    ...inputHook('onInputAvailable'),
    toModelOutput: toModelOutput && ((output: unknown, call) => toModelOutput.call(source, { ...call, output })),
  })
}

function aiSDKOptions(context: InputContext): object {
  return {
    toolCallId: context.toolCallId,
    messages: context.messages,
    abortSignal: context.abortSignal,
    context: context.requestContext,
    experimental_context: context.requestContext,
  }
}
