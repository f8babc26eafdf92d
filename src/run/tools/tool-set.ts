import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import type { ModelToolOutput, ProviderOptions } from '../../message/message.ts'
import { argumentsSchema } from '../../schema/provider-schema.ts'
import { compileSchema, type CompiledSchema } from '../../schema/compile.ts'
import type { InferInput, Schema } from '../../schema/schema.ts'
import type { OtherInput } from './tool-input.ts'
import { createTool, isTool, type InputContext, type Tool } from './tool.ts'

/** Tools by the name that the model uses: created with `createTool`, of the AI SDK, or of an MCP client. Undefined entries are ignored. */
export type ToolsInput = Record<string, Tool | AISDKTool | ProviderTool | undefined>

/** The input and the output of a tool of any origin. */
export type ToolInput<T> = T extends undefined ? never
  : T extends Tool<string, infer Input, unknown> ? Input
  : T extends { execute: (input: infer Input, ...rest: never[]) => unknown } ? Input
  : T extends { inputSchema: infer S } ? SchemaInput<S> : unknown
/** The arguments that a model writes: the input of the schema, before its transforms. */
export type ToolArgs<T> = T extends undefined ? never
  : T extends { readonly inputSchema: infer S } ? SchemaInput<NonNullable<S>> : ToolInput<T>
/** The type of the results of a tool. */
export type ToolOutput<T> = T extends undefined ? never
  : T extends Tool<string, never, infer Output> ? Output
  : T extends { execute: (...args: never[]) => infer Returned } ? Settled<Returned>
  : T extends { outputSchema: infer S } ? SchemaInput<S> : unknown

/** The `ai` package types a schema as a union of all its forms; one of them has the type of the input. */
type SchemaInput<S> = [Extract<S, { _type: unknown }>] extends [never] ? InferInput<S> : Extract<S, { _type: unknown }>['_type']
type Settled<Returned> = Returned extends AsyncIterable<infer Output> ? Output : Awaited<Returned>

export interface ResolvedTool {
  name: string
  tool: Tool
  input: CompiledSchema | undefined
  output: CompiledSchema | undefined
  suspend: CompiledSchema | undefined
  resume: CompiledSchema | undefined
  /** The definition of a tool that the provider defines. */
  provider: LanguageModelV4ProviderTool | undefined
}

/** The tools of a run: those that Heed executes, and the definitions for the model, in a stable order. */
export interface ToolSet {
  tools: ReadonlyMap<string, ResolvedTool>
  definitions: ReadonlyArray<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool>
}

const validName = /^[A-Za-z0-9_-]{1,128}$/
const noParameters = { type: 'object', properties: {}, additionalProperties: false } as const

export const emptyToolSet: ToolSet = { tools: new Map(), definitions: [] }

/** Joins tools of several sources. Throws when two of them have the same name. */
export async function resolveTools(sources: ReadonlyArray<{ from: string; tools: ToolsInput }>): Promise<ToolSet> {
  const origin = new Map<string, string>()
  const resolved: Array<ResolvedTool | LanguageModelV4ProviderTool> = []
  for (const { from, tools } of sources) {
    if (typeof tools !== 'object' || tools === null || Array.isArray(tools)) {
      throw new HeedError('invalid_tool', `${from} must be an object of tools by their names: { weather: createTool(…) }.`)
    }
    for (const [name, tool] of Object.entries(tools)) {
      if (tool === undefined) continue
      checkName(name, from, origin.get(name))
      origin.set(name, from)
      resolved.push(resolveTool(name, tool, from))
    }
  }
  if (resolved.length === 0) return emptyToolSet
  resolved.sort((a, b) => (a.name < b.name ? -1 : 1))
  const executable = resolved.filter((entry) => 'tool' in entry)
  return {
    tools: new Map(executable.map((entry) => [entry.name, entry])),
    definitions: await Promise.all(resolved.map(define)),
  }
}

/**
 * What a call of this tool may have as input besides an object: any JSON for a tool of the provider; a text where the tool has one
 * argument, which is a text and required, so that it can only be that argument.
 */
export function otherInputOf({ tools, definitions }: ToolSet, name: string): OtherInput {
  const definition = definitions.find((one) => one.name === name)
  if (definition?.type !== 'function') return tools.get(name)?.provider ? 'any JSON' : undefined
  const { properties = {}, required = [], additionalProperties = false } = definition.inputSchema
  const [argument, ...others] = Object.entries(properties)
  if (!argument || others.length > 0 || additionalProperties !== false) return undefined
  const [textOf, schema] = argument
  return required.includes(textOf) && typeof schema === 'object' && schema.type === 'string' ? { textOf } : undefined
}

function checkName(name: string, from: string, taken: string | undefined): void {
  if (taken !== undefined) {
    const message = `Two tools are called '${name}': one in ${taken}, one in ${from}. Rename one of them.`
    throw new HeedError('duplicate_tool', message, { details: { name } })
  }
  if (!validName.test(name)) {
    const message = `'${name}' in ${from} can't be a tool's name. Use letters, digits, underscores and hyphens, at most 128.`
    throw new HeedError('invalid_tool', message)
  }
}

function resolveTool(name: string, value: unknown, from: string): ResolvedTool | LanguageModelV4ProviderTool {
  const provider = isProviderTool(value) ? providerDefinition(name, value) : undefined
  if (provider && !isExecutedHere(value as ProviderTool)) return provider
  const tool = isTool(value) ? value : isAISDKTool(value) ? aiSDKTool(name, value) : undefined
  if (!tool) {
    const message = `'${name}' in ${from} is not a tool. Make it with createTool(), or pass an AI SDK or MCP tool.`
    throw new HeedError('invalid_tool', message, { details: { name } })
  }
  const compiled = (key: 'inputSchema' | 'outputSchema' | 'suspendSchema' | 'resumeSchema') =>
    tool[key] === undefined ? undefined : compileSchema(tool[key], `${key} of tool '${name}'`)
  return {
    name,
    tool,
    input: compiled('inputSchema'),
    output: compiled('outputSchema'),
    suspend: compiled('suspendSchema'),
    resume: compiled('resumeSchema'),
    provider,
  }
}

function providerDefinition(name: string, { id, args }: ProviderTool): LanguageModelV4ProviderTool {
  return { type: 'provider', id, name, args }
}

type ToolDefinition = LanguageModelV4FunctionTool | LanguageModelV4ProviderTool

async function define(entry: ResolvedTool | LanguageModelV4ProviderTool): Promise<ToolDefinition> {
  if (!('tool' in entry)) return entry
  if (entry.provider) return entry.provider
  const { tool, name, input } = entry
  const shape = input ? argumentsSchema(await input.jsonSchema()) : noParameters
  if (!shape) {
    const message = `inputSchema of tool '${name}' must describe an object: models call tools with named arguments. `
      + 'Put the value into one, such as { value: … }.'
    throw new HeedError('invalid_tool', message, { details: { name } })
  }
  return {
    type: 'function',
    name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    inputSchema: shape,
    ...(tool.inputExamples ? { inputExamples: tool.inputExamples } : {}),
    ...(tool.strict === undefined ? {} : { strict: tool.strict }),
    ...(tool.providerOptions ? { providerOptions: tool.providerOptions } : {}),
  }
}

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

function isProviderTool(value: unknown): value is ProviderTool {
  if (typeof value !== 'object' || value === null) return false
  const { type, id } = value as Partial<ProviderTool>
  return (type === 'provider' || type === 'provider-defined') && typeof id === 'string'
}

/** True for a provider's tool that Heed executes. */
function isExecutedHere({ isProviderExecuted, execute }: ProviderTool): boolean {
  return isProviderExecuted === false || (isProviderExecuted === undefined && typeof execute === 'function')
}

function isAISDKTool(value: unknown): value is AISDKTool {
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

function aiSDKTool(name: string, source: AISDKTool | ProviderTool): Tool {
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
