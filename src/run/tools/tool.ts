import type { LanguageModelV4FunctionTool, LanguageModelV4Message } from '@ai-sdk/provider'
import { checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { isObject, type JSONObject, type JSONValue } from '../../base/json.ts'
import { hasOptionsByProvider } from '../model/model.ts'
import type { ApprovalRequest, ChildCall, Chunk, Usage } from '../../message/chunk.ts'
import type { ModelToolOutput, ProviderOptions } from '../../message/message.ts'
import { compileSchema } from '../../schema/compile.ts'
import type { InferInput, InferOutput, Schema } from '../../schema/schema.ts'
import type { SignalInput } from '../../signals/signal.ts'
import type { RequestContext } from '../request-context.ts'
import { checkToolTransform, type ToolTransform } from './payloads.ts'

const marker = Symbol.for('heed.tool')

const configNames: ReadonlyArray<keyof ToolConfig<string, Schema, Schema, Schema, Schema, never>> = [
  'id', 'description', 'inputSchema', 'outputSchema', 'suspendSchema', 'resumeSchema', 'idempotent', 'timeoutMs', 'requireApproval',
  'execute', 'toModelOutput', 'onInputStart', 'onInputDelta', 'onInputAvailable', 'transform', 'strict', 'inputExamples', 'providerOptions',
]

/** A function that a model may call. Create one with `createTool`. */
export interface Tool<Id extends string = string, Input = unknown, Output = unknown, InputSchema extends Schema = Schema> {
  readonly id: Id
  readonly description: string | undefined
  readonly inputSchema: InputSchema | undefined
  readonly outputSchema: Schema | undefined
  readonly suspendSchema: Schema | undefined
  readonly resumeSchema: Schema | undefined
  readonly idempotent: boolean
  readonly timeoutMs: number | undefined
  readonly strict: boolean | undefined
  readonly inputExamples: LanguageModelV4FunctionTool['inputExamples']
  readonly providerOptions: ProviderOptions | undefined
  readonly transform: ToolTransform | undefined
  requireApproval(input: Input, context: ApprovalContext): boolean | Promise<boolean>
  execute?(input: Input, context: ToolContext): Output | Promise<Output> | AsyncIterable<Output>
  toModelOutput?(output: Output, call: { toolCallId: string; input: Input }): ModelToolOutput | Promise<ModelToolOutput>
  onInputStart?(context: InputContext): void | Promise<void>
  onInputDelta?(event: InputContext & { inputTextDelta: string }): void | Promise<void>
  onInputAvailable?(event: InputContext & { input: Input }): void | Promise<void>
}

/** The context of one call of a tool. */
export interface ToolContext<Suspend = unknown, Resume = unknown> {
  toolCallId: string
  toolName: string
  runId: string
  agentId: string
  threadId?: string
  resourceId?: string
  /** Aborts when the run does, or after `timeoutMs`. */
  abortSignal: AbortSignal
  requestContext: RequestContext
  /**
   * Where values in the prompt came from that senders of messages from outside chose, such as the channels `sms` and `sms/main`; empty if
   * there are none. The arguments of the call may contain such values.
   */
  readonly taintedBy: readonly string[]
  /** The prompt that the model received before it made the call, without the system messages. */
  readonly messages: LanguageModelV4Message[]
  /**
   * Suspends the call until it is resumed, minutes or weeks later: `return suspend({ question: '…' })`.
   * The tool is then called again with `resumeData`.
   */
  suspend(payload: Suspend): never
  /** The data that the call was resumed with; absent in the first call. */
  resumeData?: Resume
  /** Publishes data as a `data-…` chunk. */
  write(part: { type: `data-${string}`; data: JSONValue; id?: string }): void
  /** Publishes intermediate output as a `tool-output` chunk: a log line, or a chunk of another agent. Must be JSON. */
  report(output: unknown): void
  /** Sends a signal that the model reads in its next step. */
  sendSignal(signal: SignalInput): Promise<void>
}

/** The context of a call that the model is still writing. */
export interface InputContext {
  toolCallId: string
  abortSignal: AbortSignal
  requestContext: RequestContext
  /** The prompt that the model received, without the system messages. */
  messages: LanguageModelV4Message[]
}

/** What `requireApproval` of a tool knows of the call. */
export interface ApprovalContext {
  /** As in the context of the tool. */
  readonly messages: LanguageModelV4Message[]
  /** As in the context of the tool. */
  readonly taintedBy: readonly string[]
  toolCallId: string
  runId: string
  threadId?: string
  resourceId?: string
  requestContext: RequestContext
}

/** The options of `createTool()`. */
export interface ToolConfig<
  Id extends string,
  InputSchema extends Schema,
  OutputSchema extends Schema,
  SuspendSchema extends Schema,
  ResumeSchema extends Schema,
  Result,
> {
  id: Id
  description?: string
  inputSchema?: InputSchema
  /** Validates the result before it is stored; for a result that doesn't match, the model reads an error. */
  outputSchema?: OutputSchema
  suspendSchema?: SuspendSchema
  resumeSchema?: ResumeSchema
  /** True when it may run twice with the same input: after a crash it is then run again. Defaults to false. */
  idempotent?: boolean
  /** After this time the call is aborted, and the model reads an error. No limit by default. */
  timeoutMs?: number
  /** Suspend the call until it is approved. A function decides by the input. */
  requireApproval?: boolean | ((input: InferOutput<InputSchema>, context: ApprovalContext) => boolean | Promise<boolean>)
  /** Omitted for tools that the client executes. */
  execute?: (
    input: InferOutput<InputSchema>,
    context: ToolContext<InferInput<SuspendSchema>, InferOutput<ResumeSchema>>,
  ) => Result | Promise<Result> | AsyncIterable<Result>
  /** What the model reads instead of the result. Called once, after `execute`. */
  toModelOutput?: (
    output: NoInfer<Result>,
    call: { toolCallId: string; input: InferOutput<InputSchema> },
  ) => ModelToolOutput | Promise<ModelToolOutput>
  /** Called when the model begins to write a call. The stream waits for it; an error is logged. */
  onInputStart?: (context: InputContext) => void | Promise<void>
  /** Called with each delta of the input's text. */
  onInputDelta?: (event: InputContext & { inputTextDelta: string }) => void | Promise<void>
  /** Called with the complete, valid input, before approval and execution. */
  onInputAvailable?: (event: InputContext & { input: InferOutput<InputSchema> }) => void | Promise<void>
  /** What displays and transcripts show of the payloads. */
  transform?: ToolTransform
  strict?: boolean
  inputExamples?: Array<{ input: JSONObject }>
  providerOptions?: ProviderOptions
}

/** Makes a tool. The types of `execute` follow from the schemas. */
export function createTool<
  const Id extends string,
  InputSchema extends Schema = Schema,
  OutputSchema extends Schema = Schema,
  SuspendSchema extends Schema = Schema,
  ResumeSchema extends Schema = Schema,
  Result extends InferInput<OutputSchema> = InferInput<OutputSchema>,
>(
  config: ToolConfig<Id, InputSchema, OutputSchema, SuspendSchema, ResumeSchema, Result>,
): Tool<Id, InferOutput<InputSchema>, Result, InputSchema> {
  const name = `tool '${(config as Partial<typeof config> | undefined)?.id}'`
  if (typeof config !== 'object' || config === null || typeof config.id !== 'string' || config.id.trim() === '') {
    throw new HeedError('invalid_tool', "A tool needs an id: createTool({ id: 'weather', … }).")
  }
  checkNames(name, config, configNames)
  for (const key of ['inputSchema', 'outputSchema', 'suspendSchema', 'resumeSchema'] as const) {
    if (config[key] !== undefined) compileSchema(config[key], `${key} of ${name}`)
  }
  checkKinds(config, name)
  const approval = config.requireApproval ?? false
  if (typeof approval !== 'boolean' && typeof approval !== 'function') {
    throw new HeedError('invalid_tool', `requireApproval of ${name} must be true, false or a function.`)
  }
  for (const key of ['execute', 'toModelOutput', 'onInputStart', 'onInputDelta', 'onInputAvailable'] as const) {
    if (config[key] !== undefined && typeof config[key] !== 'function') {
      throw new HeedError('invalid_tool', `${key} of ${name} must be a function.`)
    }
  }
  if (config.transform !== undefined) checkToolTransform(config.transform, name)
  const tool = {
    id: config.id,
    description: config.description,
    inputSchema: config.inputSchema,
    outputSchema: config.outputSchema,
    suspendSchema: config.suspendSchema,
    resumeSchema: config.resumeSchema,
    idempotent: config.idempotent ?? false,
    timeoutMs: config.timeoutMs,
    strict: config.strict,
    inputExamples: config.inputExamples,
    providerOptions: config.providerOptions,
    transform: config.transform,
    requireApproval: typeof approval === 'function' ? approval : approval ? always : never,
    ...(config.execute ? { execute: config.execute } : {}),
    ...(config.toModelOutput ? { toModelOutput: config.toModelOutput } : {}),
    ...(config.onInputStart ? { onInputStart: config.onInputStart } : {}),
    ...(config.onInputDelta ? { onInputDelta: config.onInputDelta } : {}),
    ...(config.onInputAvailable ? { onInputAvailable: config.onInputAvailable } : {}),
  }
  Object.defineProperty(tool, marker, { value: true })
  return tool
}

/** What fields of a tool must be; the fields that providers read are checked here, since they would reach them as they are. */
const kinds: Record<string, readonly [isValid: (value: unknown) => boolean, wanted: string]> = {
  description: [(value) => typeof value === 'string', 'a text'],
  timeoutMs: [(value) => typeof value === 'number' && value > 0, 'a number above 0'],
  idempotent: [(value) => typeof value === 'boolean', 'true or false'],
  strict: [(value) => typeof value === 'boolean', 'true or false'],
  inputExamples: [
    (value) => Array.isArray(value) && value.every((one) => isObject(one) && isObject(one.input)), 'a list of { input: { … } }',
  ],
  providerOptions: [hasOptionsByProvider, 'an object for each provider, such as { openai: { … } }'],
}

function checkKinds(config: object, name: string): void {
  for (const [field, [isValid, wanted]] of Object.entries(kinds)) {
    const value: unknown = config[field as keyof typeof config]
    if (value === undefined || isValid(value)) continue
    throw new HeedError('invalid_tool', `${field} of ${name} must be ${wanted}.`, { details: { field } })
  }
  const { execute, ...rest } = config as Partial<Record<'execute' | (typeof ofExecution)[number], unknown>>
  const unused = execute ? undefined : ofExecution.find((field) => rest[field] !== undefined)
  if (unused === undefined) return
  const why = `${name} has '${unused}', which is about its execute function, and has none. Leave '${unused}' out, or add execute.`
  throw new HeedError('unsupported_option', why, { details: { option: unused } })
}

/** Fields that have no effect on a tool whose calls are answered elsewhere. */
const ofExecution = ['timeoutMs', 'idempotent', 'suspendSchema'] as const

const always = () => true
const never = () => false

/** True when no call of the tool waits for approval, whatever its input. */
export function needsNoApproval(tool: Pick<Tool, 'requireApproval'>): boolean {
  return tool.requireApproval === never
}

export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[marker] === true
}

/** The suspension of a call that runs another agent, for a suspended call of the child thread. */
interface NestedSuspension {
  kind: 'approval' | 'suspend'
  payload?: JSONValue
  /** The request of the child's call. */
  request?: ApprovalRequest
  child: ChildCall
}

/** The decision about a call of a child thread. Without `approved` and `resumeData`: the child run continued by itself. */
export interface NestedDecision {
  child: ChildCall
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

/** What a tool call that runs another agent needs besides its context. */
export interface Nesting {
  /** The step that made the call. With the ids of the run and the call it identifies the call. */
  step: number
  decision: NestedDecision | undefined
  /** The same as `report` of the context, for a chunk of the child run: it is as that run published it. */
  report(chunk: Chunk): void
  /** True when another process continues the run: the child run must go on. */
  isHandedOver(): boolean
  /** Suspends the call until the decision about the child's call arrives. */
  suspend(suspension: NestedSuspension): never
  /** Adds the usage of the child run. */
  addUsage(usage: Usage): void
  /** The result of the child run contains values that outside senders chose. */
  addTaint(taintedBy: readonly string[]): void
}

const nestings = new WeakMap<ToolContext, Nesting>()

export function setNesting(context: ToolContext, nesting: Nesting): void {
  nestings.set(context, nesting)
}

export function nestingOf(context: ToolContext): Nesting | undefined {
  return nestings.get(context)
}
