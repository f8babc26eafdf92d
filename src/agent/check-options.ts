import { isName } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { checkMemoryOptions } from '../memory/options.ts'
import type { ModelSettings } from '../run/model/model.ts'
import type { AgentExecutionOptions, MemoryTarget, StructuredOutputOptions } from '../run/options.ts'
import type { ToolSet } from '../run/tools/tool-set.ts'

type Check = (value: unknown) => string | undefined

const whole = (least: number): Check => (value) => (Number.isInteger(value) && (value as number) >= least ? undefined : `a whole number of at least ${least}`)
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const object: Check = (value) => (isObject(value) ? undefined : 'an object')
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'true or false')
const callback: Check = (value) => (typeof value === 'function' ? undefined : 'a function')
const list: Check = (value) => (Array.isArray(value) ? undefined : 'a list')
const elsewhere: Check = () => undefined

/** What each option has to be, in words for whoever got it wrong. Those that are read by others are checked there. */
const checks: Record<keyof AgentExecutionOptions, Check> = {
  memory: object,
  maxSteps: whole(1),
  stopWhen: (value) => ((Array.isArray(value) ? value : [value]).every((condition) => typeof condition === 'function') ? undefined : 'a condition or a list of them, such as stepCountIs(5)'),
  toolChoice: (value) => (isToolChoice(value) ? undefined : "'auto', 'none', 'required' or { type: 'tool', toolName: '…' }"),
  activeTools: (value) => (Array.isArray(value) && value.every((name) => typeof name === 'string') ? undefined : "a list of tools' names"),
  modelSettings: object,
  providerOptions: object,
  requestContext: (value) => (isObject(value) && typeof value.get === 'function' && 'all' in value ? undefined : 'a RequestContext: new RequestContext({ user: … })'),
  abortSignal: (value) => (isAbortSignal(value) ? undefined : 'the signal of an AbortController'),
  structuredOutput: object,
  instructions: elsewhere,
  system: elsewhere,
  model: elsewhere,
  tools: elsewhere,
  toolsets: object,
  clientTools: elsewhere,
  requireToolApproval: flag,
  toolCallConcurrency: whole(1),
  inputProcessors: list,
  outputProcessors: list,
  maxProcessorRetries: whole(0),
  transform: wantedTransform,
  runId: (value) => (typeof value === 'string' && value !== '' ? undefined : 'a text that is not empty'),
  includeRawChunks: flag,
  onChunk: callback,
  onStepFinish: callback,
  onFinish: callback,
  onError: callback,
  onAbort: callback,
}

const structuredNames: Record<keyof StructuredOutputOptions, true> = { schema: true, name: true, description: true, jsonPromptInjection: true }

const settingNames: Record<keyof ModelSettings, true> = {
  maxOutputTokens: true, temperature: true, topP: true, topK: true, presencePenalty: true, frequencyPenalty: true, stopSequences: true, seed: true,
  headers: true, reasoning: true, maxRetries: true,
}

const memoryNames: Record<keyof MemoryTarget, true> = { thread: true, resource: true, options: true }
const threadNames: Record<keyof Exclude<MemoryTarget['thread'], string>, true> = { id: true, title: true, metadata: true }

/** Refuses options by name: those that don't exist, and those whose value can't be meant. `of` says whose options they are. */
export function checkOptions(options: unknown, of: string): asserts options is AgentExecutionOptions {
  if (!isObject(options)) throw new HeedError('invalid_argument', `The options of ${of} must be an object.`)
  for (const name of Object.keys(options)) {
    const value = options[name]
    if (value === undefined) continue
    if (!Object.hasOwn(checks, name)) throw unknown(name, of, checks)
    const wanted = checks[name as keyof AgentExecutionOptions](value)
    if (wanted !== undefined) throw new HeedError('invalid_argument', `${name} of ${of} must be ${wanted}.`, { details: { option: name } })
  }
  const { structuredOutput, modelSettings, memory } = options as AgentExecutionOptions
  checkNames('structuredOutput', structuredOutput, structuredNames, of)
  checkNames('modelSettings', modelSettings, settingNames, of)
  checkNames('memory', memory, memoryNames, of)
  if (typeof memory?.thread === 'object') checkNames('memory.thread', memory.thread, threadNames, of)
  if (memory?.options !== undefined) checkMemoryOptions(memory.options)
}

/** A misspelt name would otherwise pass for one that isn't given. */
function checkNames(under: string, given: object | undefined, names: object, of: string): void {
  if (!given) return
  for (const [name, value] of Object.entries(given)) if (value !== undefined && !Object.hasOwn(names, name)) throw unknown(`${under}.${name}`, of, names)
}

function unknown(option: string, of: string, names: object): HeedError {
  return new HeedError('unsupported_option', `${of} has no option '${option}'. Known: ${Object.keys(names).join(', ')}.`, { details: { option } })
}

/** Where a conversation is kept has to be said in full. */
export function checkMemory(memory: MemoryTarget): { threadId: string; resourceId: string } {
  const { thread, resource } = memory as Partial<MemoryTarget>
  const threadId = typeof thread === 'string' ? thread : thread?.id
  if (!isName(threadId)) {
    throw new HeedError('invalid_argument', "memory.thread needs an id of whole characters without NUL, for example memory: { thread: 'chat-1', resource: 'user-7' }.", { details: { field: 'memory.thread' } })
  }
  if (!isName(resource)) {
    throw new HeedError('invalid_argument', "memory.resource is missing, or no text of whole characters without NUL: say whom the thread belongs to, for example memory: { thread: 'chat-1', resource: 'user-7' }.", { details: { field: 'memory.resource' } })
  }
  return { threadId, resourceId: resource }
}

/** Refuses names of tools that this call doesn't have, where its options ask for them. */
export function checkToolNames({ activeTools, toolChoice }: AgentExecutionOptions, { definitions }: ToolSet): void {
  const known = definitions.map(({ name }) => name)
  const stranger = activeTools?.find((name) => !known.includes(name))
  if (stranger !== undefined) throw noSuchTool('activeTools', stranger, known)
  if (typeof toolChoice !== 'object') return
  const offered = activeTools ?? known
  if (!offered.includes(toolChoice.toolName)) throw noSuchTool('toolChoice', toolChoice.toolName, offered)
}

function noSuchTool(option: string, toolName: string, known: readonly string[]): HeedError {
  const there = known.length === 0 ? 'there are no tools' : `the tools are ${known.join(', ')}`
  return new HeedError('unknown_tool', `${option} names '${toolName}', but ${there}. Correct the name, or pass the tool.`, { details: { option, toolName } })
}

/** What a `transform` has to be; nothing when it is. */
export function wantedTransform(value: unknown): string | undefined {
  if (!isObject(value) || typeof value.transformToolPayload !== 'function') return 'an object with the function transformToolPayload'
  const { targets } = value
  const fits = targets === undefined || (Array.isArray(targets) && targets.every((target) => target === 'display' || target === 'transcript'))
  return fits ? undefined : "an object whose targets are of 'display' and 'transcript'"
}

function isToolChoice(value: unknown): boolean {
  if (isObject(value)) return value.type === 'tool' && typeof value.toolName === 'string'
  return value === 'auto' || value === 'none' || value === 'required'
}

function isAbortSignal(value: unknown): boolean {
  return isObject(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function'
}
