import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { argumentsSchema } from '../../schema/arguments-schema.ts'
import { compileSchema, type CompiledSchema } from '../../schema/compile.ts'
import type { InferInput } from '../../schema/schema.ts'
import { aiSDKTool, isAISDKTool, isProviderTool, runsHere, type AISDKTool, type ProviderTool } from './ai-sdk-tool.ts'
import { isTool, type Tool } from './tool.ts'

/** Tools by the name the model calls them by: made with `createTool`, taken from the AI SDK, or from an MCP client. What is undefined is left out. */
export type ToolsInput = Record<string, Tool | AISDKTool | ProviderTool | undefined>

/** The input a tool of any origin takes, and the output it gives. */
export type ToolInput<T> = T extends undefined ? never
  : T extends Tool<string, infer Input, unknown> ? Input
  : T extends { execute: (input: infer Input, ...rest: never[]) => unknown } ? Input
  : T extends { inputSchema: infer S } ? SchemaInput<S> : unknown
/** What a model writes to call a tool: its input as it is before the schema makes something of it. */
export type ToolArgs<T> = T extends undefined ? never : T extends { readonly inputSchema: infer S } ? SchemaInput<NonNullable<S>> : ToolInput<T>
export type ToolOutput<T> = T extends undefined ? never
  : T extends Tool<string, never, infer Output> ? Output
  : T extends { execute: (...args: never[]) => infer Returned } ? Settled<Returned>
  : T extends { outputSchema: infer S } ? SchemaInput<S> : unknown

/** The `ai` package writes a schema as a union of all forms it takes; one of them carries the type. */
type SchemaInput<S> = [Extract<S, { _type: unknown }>] extends [never] ? InferInput<S> : Extract<S, { _type: unknown }>['_type']
type Settled<Returned> = Returned extends AsyncIterable<infer Output> ? Output : Awaited<Returned>

export interface ResolvedTool {
  name: string
  tool: Tool
  input: CompiledSchema | undefined
  output: CompiledSchema | undefined
  suspend: CompiledSchema | undefined
  resume: CompiledSchema | undefined
  /** What the model is told in place of a description, where the tool is one that its provider knows. */
  provider: LanguageModelV4ProviderTool | undefined
}

/** The tools of a run: what can be executed here, and what the model is told, in an order that never changes. */
export interface ToolSet {
  tools: ReadonlyMap<string, ResolvedTool>
  definitions: ReadonlyArray<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool>
}

const validName = /^[A-Za-z0-9_-]{1,128}$/
const noParameters = { type: 'object', properties: {}, additionalProperties: false } as const

export const emptyToolSet: ToolSet = { tools: new Map(), definitions: [] }

/** Joins tools from several places. A name that two of them use is an error: the model could not tell them apart. */
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

function checkName(name: string, from: string, taken: string | undefined): void {
  if (taken !== undefined) {
    throw new HeedError('duplicate_tool', `Two tools are called '${name}': one in ${taken}, one in ${from}. Rename one of them.`, { details: { name } })
  }
  if (!validName.test(name)) {
    throw new HeedError('invalid_tool', `'${name}' in ${from} can't be a tool's name. Use letters, digits, underscores and hyphens, at most 128.`)
  }
}

function resolveTool(name: string, value: unknown, from: string): ResolvedTool | LanguageModelV4ProviderTool {
  const provider = isProviderTool(value) ? providerDefinition(name, value) : undefined
  if (provider && !runsHere(value as ProviderTool)) return provider
  const tool = isTool(value) ? value : isAISDKTool(value) ? aiSDKTool(name, value) : undefined
  if (!tool) {
    throw new HeedError('invalid_tool', `'${name}' in ${from} is not a tool. Make it with createTool(), or pass an AI SDK or MCP tool.`, { details: { name } })
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

async function define(entry: ResolvedTool | LanguageModelV4ProviderTool): Promise<LanguageModelV4FunctionTool | LanguageModelV4ProviderTool> {
  if (!('tool' in entry)) return entry
  if (entry.provider) return entry.provider
  const { tool, name, input } = entry
  const shape = input ? argumentsSchema(await input.jsonSchema()) : noParameters
  if (!shape) {
    throw new HeedError('invalid_tool', `inputSchema of tool '${name}' must describe an object: models call tools with named arguments. Put the value into one, such as { value: … }.`, { details: { name } })
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
