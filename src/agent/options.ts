import { checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isName, isObject } from '../base/json.ts'
import { checkMemoryOptions, historyOption } from '../memory/options.ts'
import { mergeRecallOptions } from '../memory/semantic/search.ts'
import { hasOptionsByProvider, invalidSetting, modelSettingNames, type ModelSettings } from '../run/model/model.ts'
import type { AgentExecutionOptions, DefaultOptions, MemoryOptions, MemoryTarget, StructuredOutputOptions } from '../run/options.ts'
import { RequestContext } from '../run/request-context.ts'
import type { ToolSet } from '../run/tools/tool-set.ts'
import { checkCallScorers } from '../scorers/sampling.ts'

/** The agent's defaults and the options of a call, merged. */
export type ResolvedOptions = AgentExecutionOptions & { requestContext: RequestContext }

/**
 * Options of the call override the defaults of the agent; `undefined` overrides nothing. Groups of settings are merged by key: model
 * settings and their headers, provider options, and memory with its options. Everything else is replaced.
 */
export function mergeOptions(defaults: DefaultOptions, options: AgentExecutionOptions): AgentExecutionOptions {
  const merged = overlaid<AgentExecutionOptions>(defaults as AgentExecutionOptions, options)
  const { modelSettings, providerOptions, memory } = options
  if (defaults.modelSettings && modelSettings) {
    merged.modelSettings = overlaid(defaults.modelSettings, modelSettings)
    if (defaults.modelSettings.headers && modelSettings.headers)
      merged.modelSettings.headers = overlaid(defaults.modelSettings.headers, modelSettings.headers)
  }
  if (defaults.providerOptions && providerOptions) {
    merged.providerOptions = { ...defaults.providerOptions }
    for (const [provider, value] of Object.entries(providerOptions))
      merged.providerOptions[provider] = overlaid(merged.providerOptions[provider] ?? {}, value ?? {})
  }
  if (isObject(defaults.memory) && isObject(memory)) merged.memory = mergeMemory(defaults.memory, memory)
  return merged
}

function mergeMemory(defaults: Partial<MemoryTarget>, own: MemoryTarget): MemoryTarget {
  const merged = overlaid<MemoryTarget>(defaults, own)
  const { options: before } = defaults
  const { options: after } = own
  if (!before || !after) return merged
  const { lastMessages: _, window: __, ...options }: MemoryOptions = overlaid(before, after)
  if (before.semanticRecall !== undefined && after.semanticRecall !== undefined)
    options.semanticRecall = mergeRecallOptions(before.semanticRecall, after.semanticRecall)
  if (before.workingMemory && after.workingMemory)
    options.workingMemory = overlaid(before.workingMemory, after.workingMemory)
  return { ...merged, options: { ...options, ...historyOption(before, after) } }
}

/** The fields of both; where both have one, that of `over`. */
function overlaid<Fields extends object>(base: Partial<Fields>, over: Fields): Fields {
  return { ...base, ...Object.fromEntries(Object.entries(over).filter(([, value]) => value !== undefined)) } as Fields
}

/** Returns a description of the expected value, for the error message; undefined when the value is valid. */
type Check = (value: unknown) => string | undefined

const whole =
  (least: number): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least ? undefined : `a whole number of at least ${least}`
const object: Check = (value) => (isObject(value) ? undefined : 'an object')
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'true or false')
const callback: Check = (value) => (typeof value === 'function' ? undefined : 'a function')
const list: Check = (value) => (Array.isArray(value) ? undefined : 'a list')
const unchecked: Check = () => undefined

/** The check of each option. `unchecked` options are validated where they are read. */
const checks: Record<keyof AgentExecutionOptions, Check> = {
  memory: object,
  maxSteps: whole(1),
  stopWhen: (value) =>
    (Array.isArray(value) ? value : [value]).every((condition) => typeof condition === 'function')
      ? undefined
      : 'a condition or a list of them, such as stepCountIs(5)',
  toolChoice: (value) => (isToolChoice(value) ? undefined : "'auto', 'none', 'required' or { type: 'tool', toolName: '…' }"),
  activeTools: (value) => (Array.isArray(value) && value.every((name) => typeof name === 'string') ? undefined : "a list of tools' names"),
  modelSettings: object,
  providerOptions: (value) => (hasOptionsByProvider(value) ? undefined : 'an object for each provider, such as { openai: { … } }'),
  requestContext: (value) =>
    isObject(value) && typeof value.get === 'function' && 'all' in value ? undefined : 'a RequestContext: new RequestContext({ user: … })',
  abortSignal: (value) => (isAbortSignal(value) ? undefined : 'the signal of an AbortController'),
  structuredOutput: object,
  instructions: unchecked,
  system: unchecked,
  model: unchecked,
  tools: unchecked,
  toolsets: object,
  clientTools: unchecked,
  requireToolApproval: flag,
  toolCallConcurrency: whole(1),
  inputProcessors: list,
  outputProcessors: list,
  maxProcessorRetries: whole(0),
  transform: wantedTransform,
  runId: (value) => (typeof value === 'string' && value !== '' ? undefined : 'a text that is not empty'),
  includeRawChunks: flag,
  agentVersion: (value) => (value === 'draft' || whole(0)(value) === undefined ? undefined : "the number of a version, or 'draft'"),
  scorers: object,
  onChunk: callback,
  onStepFinish: callback,
  onFinish: callback,
  onError: callback,
  onAbort: callback,
}

const structuredNames: Record<keyof StructuredOutputOptions, true> = {
  schema: true,
  name: true,
  description: true,
  jsonPromptInjection: true,
}

const memoryNames: Record<keyof MemoryTarget, true> = { thread: true, resource: true, options: true }
const threadNames: Record<keyof Exclude<MemoryTarget['thread'], string>, true> = { id: true, title: true, metadata: true }

/** Rejects unknown options and invalid values; the error names the option. `of` names the owner of the options in the error. */
export function checkOptions(options: unknown, of: string): asserts options is AgentExecutionOptions {
  if (!isObject(options)) throw new HeedError('invalid_argument', `The options of ${of} must be an object.`)
  for (const name of Object.keys(options)) {
    const value = options[name]
    if (value === undefined) continue
    if (!Object.hasOwn(checks, name)) throw unknownOption(name, of, checks)
    const wanted = checks[name as keyof AgentExecutionOptions](value)
    if (wanted !== undefined) throw new HeedError('invalid_argument', `${name} of ${of} must be ${wanted}.`, { details: { option: name } })
  }
  const { structuredOutput, modelSettings, memory } = options as AgentExecutionOptions
  checkKnown('structuredOutput', structuredOutput, structuredNames, of)
  checkStructured(structuredOutput, of)
  checkKnown('modelSettings', modelSettings, modelSettingNames, of)
  const invalid = modelSettings && invalidSetting(modelSettings)
  if (invalid) {
    const option = `modelSettings.${invalid.name}`
    throw new HeedError('invalid_argument', `${option} of ${of} must be ${invalid.wanted}.`, { details: { option } })
  }
  checkKnown('memory', memory, memoryNames, of)
  if (isObject(memory?.thread)) checkThread(memory.thread, of)
  if (memory?.options !== undefined) checkMemoryOptions(memory.options)
  if (options.scorers !== undefined) checkCallScorers(options.scorers, of)
}

const structuredChecks: Partial<Record<keyof StructuredOutputOptions, Check>> = {
  name: (value) => (typeof value === 'string' && value !== '' ? undefined : 'a text that is not empty'),
  description: (value) => (typeof value === 'string' ? undefined : 'a text'),
  jsonPromptInjection: flag,
}

function checkStructured(structuredOutput: StructuredOutputOptions = {} as StructuredOutputOptions, of: string): void {
  for (const [name, check] of Object.entries(structuredChecks)) {
    const value: unknown = structuredOutput[name as keyof StructuredOutputOptions]
    const wanted = value === undefined ? undefined : check(value)
    const option = `structuredOutput.${name}`
    if (wanted !== undefined) throw new HeedError('invalid_argument', `${option} of ${of} must be ${wanted}.`, { details: { option } })
  }
}

/** The options of a call that change its prompt. */
export interface ExplainOptions
  extends Pick<
    AgentExecutionOptions,
    | 'activeTools' | 'clientTools' | 'inputProcessors' | 'instructions' | 'outputProcessors' | 'requestContext' | 'system' | 'tools'
    | 'toolsets' | 'agentVersion'
  > {
  /** The thread that the prompt begins with. */
  memory?: { thread: string | { id: string }; resource?: string; options?: Omit<MemoryOptions, 'generateTitle' | 'save'> }
  /** With `jsonPromptInjection`, the prompt has the schema in words. */
  structuredOutput?: Pick<StructuredOutputOptions, 'schema' | 'jsonPromptInjection'>
}

const explained: Record<keyof ExplainOptions, true> = {
  memory: true, activeTools: true, clientTools: true, inputProcessors: true, instructions: true, outputProcessors: true,
  requestContext: true, structuredOutput: true, system: true, tools: true, toolsets: true, agentVersion: true,
}

/** Checks the options of `explainPrompt()`. Those that change no prompt are rejected: a caller would take them for explained. */
export function checkExplained(options: unknown): asserts options is ExplainOptions {
  checkOptions(options, 'explainPrompt()')
  const { memory = {}, structuredOutput = {} } = options
  const { thread, options: ofMemory = {} } = memory as Partial<MemoryTarget>
  const { title, metadata } = typeof thread === 'object' ? thread : {}
  const { name, description } = structuredOutput as Partial<StructuredOutputOptions>
  const given = {
    ...Object.fromEntries(Object.entries(options).filter(([option]) => !Object.hasOwn(explained, option))),
    'memory.thread.title': title,
    'memory.thread.metadata': metadata,
    'memory.options.generateTitle': ofMemory.generateTitle,
    'memory.options.save': ofMemory.save,
    'structuredOutput.name': name,
    'structuredOutput.description': description,
  }
  const option = Object.entries(given).find(([, value]) => value !== undefined)?.[0]
  if (option === undefined) return
  const message = `explainPrompt() has no option '${option}': it changes no prompt, and nothing is run or stored. Leave it out.`
  throw new HeedError('unsupported_option', message, { details: { option } })
}

/** Checks the default options of an agent. A default is for all runs, and an id for one. */
export function checkDefaults(options: unknown, of: string): void {
  checkOptions(options, of)
  if (options.scorers !== undefined)
    throw new HeedError('invalid_argument', `scorers of ${of} are those of the agent: new Agent({ scorers }).`, {
      details: { option: 'scorers' },
    })
  const option = (['runId', 'agentVersion'] as const).find((name) => options[name] !== undefined)
  if (option === undefined) return
  throw new HeedError('invalid_argument', `${option} of ${of} has no effect: it is for one run. Pass it to the call.`, {
    details: { option },
  })
}

function checkThread(thread: object, of: string): void {
  checkKnown('memory.thread', thread, threadNames, of)
  const { title, metadata } = thread as Record<string, unknown>
  const wanted: Array<[string, string | undefined]> = [
    ['memory.thread.title', title === undefined || typeof title === 'string' ? undefined : 'a text'],
    ['memory.thread.metadata', metadata === undefined || isObject(metadata) ? undefined : 'an object'],
  ]
  for (const [option, what] of wanted)
    if (what !== undefined) throw new HeedError('invalid_argument', `${option} of ${of} must be ${what}.`, { details: { option } })
}

/** Rejects unknown fields, which may be misspelt options. */
function checkKnown(under: string, fields: object | undefined, names: object, of: string): void {
  if (!fields) return
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && !Object.hasOwn(names, name)) throw unknownOption(`${under}.${name}`, of, names)
}

function unknownOption(option: string, of: string, names: object): HeedError {
  return new HeedError('unsupported_option', `${of} has no option '${option}'. Known: ${Object.keys(names).join(', ')}.`, {
    details: { option },
  })
}

/** The memory of merged options; undefined where they have default options of memory, and no thread. */
export function targetIn({ memory }: ResolvedOptions): MemoryTarget | undefined {
  const isTarget = memory && ((memory as Partial<MemoryTarget>).thread !== undefined || memory.resource !== undefined)
  return isTarget ? memory : undefined
}

/** Returns the thread and the resource of `memory`. Both are required. */
export function checkMemory(memory: MemoryTarget): { threadId: string; resourceId: string } {
  const { thread, resource } = memory as Partial<MemoryTarget>
  const threadId = typeof thread === 'string' ? thread : thread?.id
  if (!isName(threadId)) {
    throw new HeedError(
      'invalid_argument',
      "memory.thread must have an id (well-formed Unicode, no NUL), for example memory: { thread: 'chat-1', resource: 'user-7' }.",
      { details: { field: 'memory.thread' } },
    )
  }
  if (!isName(resource)) {
    throw new HeedError(
      'invalid_argument',
      'memory.resource is missing or is not a valid string (well-formed Unicode, no NUL). Pass the owner of the thread, ' +
        "for example memory: { thread: 'chat-1', resource: 'user-7' }.",
      { details: { field: 'memory.resource' } },
    )
  }
  return { threadId, resourceId: resource }
}

/** Rejects what a call that stores nothing was asked to store, and options of what it does not have. */
export function checkUnsaved({ thread, options = {} }: MemoryTarget): void {
  const { title, metadata } = typeof thread === 'object' ? thread : {}
  const { workingMemory, semanticRecall, generateTitle } = options
  const isOff = (given: object | boolean | undefined) => typeof given === 'object' && 'enabled' in given && given.enabled === false
  const given = {
    'memory.thread.title': title,
    'memory.thread.metadata': metadata,
    'memory.options.workingMemory': isOff(workingMemory) ? undefined : workingMemory,
    'memory.options.semanticRecall': isOff(semanticRecall) ? undefined : semanticRecall,
    'memory.options.generateTitle': generateTitle,
  }
  const field = Object.entries(given).find(([, value]) => value !== undefined && value !== false)?.[0]
  if (field === undefined) return
  const message = `${field} has no effect: with save: false a call reads history, and stores nothing. Leave it out.`
  throw new HeedError('invalid_argument', message, { details: { field } })
}

/** Rejects names in `activeTools` and `toolChoice` that no tool of this call has. */
export function checkToolNames({ activeTools, toolChoice }: AgentExecutionOptions, { definitions }: ToolSet): void {
  const known = definitions.map(({ name }) => name)
  const unknown = activeTools?.find((name) => !known.includes(name))
  if (unknown !== undefined) throw unknownTool('activeTools', unknown, known)
  const offered = activeTools ?? known
  if (toolChoice === 'required' && known.length === 0) {
    const message = "toolChoice 'required' has no effect: there are no tools to call. Pass a tool, or leave it out."
    throw new HeedError('invalid_argument', message, { details: { option: 'toolChoice' } })
  }
  if (typeof toolChoice !== 'object') return
  if (!offered.includes(toolChoice.toolName)) throw unknownTool('toolChoice', toolChoice.toolName, offered)
}

function unknownTool(option: string, toolName: string, known: readonly string[]): HeedError {
  const tools = known.length === 0 ? 'there are no tools' : `the tools are ${known.join(', ')}`
  return new HeedError('unknown_tool', `${option} names '${toolName}', but ${tools}. Correct the name, or pass the tool.`, {
    details: { option, toolName },
  })
}

/** The check of `transform`. */
export function wantedTransform(value: unknown): string | undefined {
  if (!isObject(value) || typeof value.transformToolPayload !== 'function') return 'an object with the function transformToolPayload'
  const { targets, transformToolPayload: _, ...others } = value
  if (Object.keys(others).length > 0) return `an object without '${Object.keys(others)[0]}': transformToolPayload, targets`
  const fits =
    targets === undefined || (Array.isArray(targets) && targets.every((target) => target === 'display' || target === 'transcript'))
  return fits ? undefined : "an object whose targets are of 'display' and 'transcript'"
}

function isToolChoice(value: unknown): boolean {
  if (isObject(value)) {
    const { type, toolName, ...others } = value
    return type === 'tool' && typeof toolName === 'string' && Object.values(others).every((other) => other === undefined)
  }
  return value === 'auto' || value === 'none' || value === 'required'
}

function isAbortSignal(value: unknown): boolean {
  return isObject(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function'
}

/** The request that a method is called for. */
export type ForRequest = RequestContext | { requestContext?: RequestContext }

const text: Check = (value) => (typeof value === 'string' && value !== '' ? undefined : 'a text that is not empty')
const texts: Check = (value) => (Array.isArray(value) && value.every((one) => text(one) === undefined) ? undefined : 'a list of ids')
const safeWhole =
  (least: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && Number(value) >= least ? undefined : `a whole number of at least ${least}`
const date: Check = (value) => (value instanceof Date && !Number.isNaN(value.getTime()) ? undefined : 'a Date')
const optional = (check: Check): Check => (value) => (value === undefined ? undefined : check(value))

const thread = { threadId: text, resourceId: optional(text) }
const request = { toolCallId: optional(text), approvalId: optional(text), digest: optional(text), by: optional(text) }
const run = { runId: text, ...request, resourceId: optional(text) }
const abort = { ...thread, clearPendingSignals: optional(flag), expectedRunId: optional(text) }
const suspendedCall = { id: optional(text), threadId: text, resourceId: optional(text), runId: optional(text), ...request }

/** The parameters of each method. */
const methods = {
  getLane: { ...thread, id: text },
  listLanes: { ...thread, after: optional(text), limit: optional(safeWhole(1)) },
  listLaneHistory: { ...thread, id: text, before: optional(safeWhole(0)), limit: optional(safeWhole(1)) },
  subscribeToThread: { ...thread, after: optional(text), snapshot: optional(flag), watches: optional(flag) },
  abortRun: abort,
  abortThreadStream: abort,
  activeRun: thread,
  listActiveThreads: { resourceId: optional(text), limit: optional(safeWhole(1)) },
  listQueued: thread,
  cancelQueued: { ...thread, signalIds: texts },
  reorderQueued: { ...thread, signalIds: texts },
  explain: { ...thread, signalId: text },
  retryParked: { ...thread, runId: optional(text) },
  sendToolApproval: { ...suspendedCall, approved: optional(flag), declineContext: optional(decline), resumeData: unchecked },
  sendStreamResume: { ...suspendedCall, resumeData: unchecked },
  approveToolCall: run,
  declineToolCall: { ...run, reason: optional((value) => (typeof value === 'string' ? undefined : 'a text')) },
  resumeStream: run,
  listSuspendedRuns: {
    threadId: optional(text),
    resourceId: optional(text),
    fromDate: optional(date),
    toDate: optional(date),
    page: optional(safeWhole(0)),
    perPage: optional(safeWhole(0)),
    total: optional(flag),
  },
} satisfies Record<string, Record<string, Check>>

/** Returns the argument of a method, or throws an error that names the invalid field. */
export function validateArguments<Argument extends object>(method: keyof typeof methods, argument: Argument): Argument {
  const fields: Record<string, Check> = methods[method]
  checkNames(`${method}()`, argument, Object.keys(fields))
  for (const [field, check] of Object.entries(fields)) {
    const wanted = check((argument as Record<string, unknown>)[field])
    if (wanted !== undefined) throw refused(field, wanted)
  }
  return argument
}

/** The context of a request; an empty one where it has none. */
export function requestContextIn(method: string, request: ForRequest = {}): RequestContext {
  if (isContext(request)) return request
  checkNames(method, request, ['requestContext'])
  const { requestContext = new RequestContext() } = request
  if (!isContext(requestContext)) throw refused('requestContext', 'a RequestContext: new RequestContext({ user: … })')
  return requestContext
}

/** Not `instanceof`: the class may come from another copy of this package. */
function isContext(value: unknown): value is RequestContext {
  return typeof value === 'object' && value !== null && 'get' in value && typeof value.get === 'function' && 'all' in value
}

function decline(value: unknown): string | undefined {
  const valid =
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(
      ([name, text]) => (name === 'reason' || name === 'message') && (text === undefined || typeof text === 'string'),
    )
  return valid ? undefined : 'an object with a reason'
}

/** Options of the legacy methods. */
export interface LegacyOptions extends AgentExecutionOptions, Omit<ModelSettings, 'maxOutputTokens' | 'reasoning'> {
  maxTokens?: number
  threadId?: string
  resourceId?: string
}

/** Converts legacy options to their current form. */
export function fromLegacyOptions(legacy: LegacyOptions): AgentExecutionOptions {
  if (typeof legacy !== 'object' || legacy === null) return legacy
  const {
    maxTokens,
    temperature,
    topP,
    topK,
    seed,
    presencePenalty,
    frequencyPenalty,
    stopSequences,
    headers,
    maxRetries,
    threadId,
    resourceId,
    ...options
  } = legacy
  const settings = present({
    maxOutputTokens: maxTokens,
    temperature,
    topP,
    topK,
    seed,
    presencePenalty,
    frequencyPenalty,
    stopSequences,
    headers,
    maxRetries,
  })
  const target = present({ thread: threadId, resource: resourceId })
  checkOnce('modelSettings', settings, options.modelSettings)
  checkOnce('memory', target, options.memory)
  return {
    ...options,
    ...(Object.keys(settings).length === 0 ? {} : { modelSettings: { ...settings, ...options.modelSettings } }),
    // An incomplete target is rejected where it is used.
    ...(Object.keys(target).length === 0 ? {} : { memory: { ...target, ...options.memory } as MemoryTarget }),
  }
}

/** Rejects an option that is given in its legacy form and in its current one: one of them would have no effect. */
function checkOnce(under: 'modelSettings' | 'memory', legacy: object, current: object | undefined): void {
  const name = isObject(current) && Object.keys(legacy).find((key) => current[key] !== undefined)
  if (!name) return
  const option = `${under}.${name}`
  throw new HeedError('invalid_argument', `${option} is given twice: also in its legacy form. Pass one of them.`, { details: { option } })
}

function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
