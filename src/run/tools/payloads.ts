import { checkNames, refused } from '../../base/arguments.ts'
import { describe, HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { Chunk, ChunkPayloads, RunChunk } from '../../message/chunk.ts'
import type { MessagePart, ModelToolOutput, ToolInvocation } from '../../message/message.ts'
import { storableOutput } from '../../message/tool-output.ts'
import { withheldPayload } from '../../message/content.ts'
import type { CompiledSchema } from '../../schema/compile.ts'
import type { Shown } from '../step/step-recorder.ts'
import type { ToolCall, WaitingCall } from '../step/step-result.ts'

/** Who reads the payload: live streams, or the stored transcript. The model always reads the original. */
export type TransformTarget = 'display' | 'transcript'

/** Which part of a call is shown. */
export type TransformPhase = 'input-delta' | 'input-available' | 'output-available' | 'error' | 'approval' | 'suspend'

/** What `transform` of a tool receives. */
export interface TransformContext {
  target: TransformTarget
  phase: TransformPhase
  toolName: string
  toolCallId: string
  input?: JSONValue
  inputTextDelta?: string
  output?: JSONValue
  error?: string
  suspendPayload?: JSONValue
}

/** Returns what readers see instead; undefined leaves it as it is. */
export type TransformFunction = (context: TransformContext) => JSONValue | undefined | Promise<JSONValue | undefined>

interface TargetTransform {
  input?: TransformFunction
  /** Without it, the input deltas of a tool that has `input` are not published. */
  inputDelta?: TransformFunction
  output?: TransformFunction
  error?: TransformFunction
  approval?: TransformFunction
  suspend?: TransformFunction
}

/** The rules of one tool. */
export type ToolTransform = Partial<Record<TransformTarget, TargetTransform>>

/** A misspelt rule would show what it was to hide. */
export function checkToolTransform(transform: ToolTransform, tool: string): void {
  checkNames(`transform of ${tool}`, transform, ['display', 'transcript'])
  for (const [target, rules] of Object.entries(transform)) {
    if (rules === undefined) continue
    checkNames(`transform.${target} of ${tool}`, rules, Object.values(ruleNames))
    for (const [name, rule] of Object.entries(rules))
      if (rule !== undefined && typeof rule !== 'function') throw refused(`transform.${target}.${name} of ${tool}`, 'a function')
  }
}

/** The rule of an agent for all its tools. A rule of the tool itself comes first; `undefined` leaves the payload unchanged. */
export interface ToolPayloadTransformPolicy {
  transformToolPayload: TransformFunction
  targets?: TransformTarget[]
}

const ruleNames: Record<TransformPhase, keyof TargetTransform> = {
  'input-delta': 'inputDelta',
  'input-available': 'input',
  'output-available': 'output',
  error: 'error',
  approval: 'approval',
  suspend: 'suspend',
}

/** The part of a run that its display uses. */
interface DisplayedRun {
  readonly logger: Logger
  readonly tools: {
    readonly tools: ReadonlyMap<string, { tool: { readonly transform: ToolTransform | undefined }; resume: CompiledSchema | undefined }>
  }
  publish(chunk: Chunk): Shown | Promise<Shown>
  chunk<Type extends keyof ChunkPayloads>(type: Type, payload: ChunkPayloads[Type]): RunChunk
  unlessAborted<T>(work: T | PromiseLike<T>): T | Promise<T>
}

type Of<Type extends Chunk['type']> = Extract<Chunk, { type: Type }>
type Call = Pick<ToolCall, 'toolCallId' | 'toolName' | 'args'>

/** Publishes the tool calls and results of a run, as the `transform` rules of the tool and of the agent allow. */
export class ToolDisplay {
  readonly #run: DisplayedRun
  readonly #policy: ToolPayloadTransformPolicy | undefined

  constructor(run: DisplayedRun, policy: ToolPayloadTransformPolicy | undefined) {
    this.#run = run
    this.#policy = policy
  }

  /** Publishes a chunk about a tool call of the model's stream. */
  publishCall(chunk: Chunk): Shown | Promise<Shown> {
    if (chunk.type !== 'tool-call' && chunk.type !== 'tool-call-delta' && chunk.type !== 'tool-result') return this.#run.publish(chunk)
    const rules = this.#rulesOf(chunk.payload.toolName)
    if (this.#hasNoRule(rules)) return this.#run.publish(chunk)
    if (chunk.type === 'tool-call') return this.#publishToolCall(chunk)
    return chunk.type === 'tool-result' ? this.#publishProviderResult(chunk) : this.#publishDelta(chunk, rules)
  }

  async #publishToolCall(chunk: Of<'tool-call'>): Promise<Shown> {
    const [call] = await this.displayedCalls([chunk.payload])
    return this.#run.publish(call === chunk.payload ? chunk : { ...chunk, payload: { ...chunk.payload, ...call } })
  }

  /** The rules also apply to the result of a tool that the provider executed. */
  async #publishProviderResult(chunk: Of<'tool-result'>): Promise<Shown> {
    const { toolCallId, toolName, args, result, isError } = chunk.payload
    const invocation: ToolInvocation = isError
      ? { toolCallId, toolName, args, state: 'output-error', errorText: textOf(result) }
      : { toolCallId, toolName, args, state: 'result', result }
    const seen = await this.#transformed(invocation, 'display')
    const payload = { ...chunk.payload, args: seen.args }
    if (seen.errorText !== invocation.errorText) {
      payload.result = seen.errorText ?? ''
      // A text that a rule made is for readers.
      delete payload.errorCode
    } else if (!isError) payload.result = seen.result ?? null
    return this.#run.publish({ ...chunk, payload })
  }

  /** Where a rule hides the input, its deltas are only published if `inputDelta` transforms them. */
  async #publishDelta(chunk: Of<'tool-call-delta'>, rules: ToolTransform | undefined): Promise<Shown> {
    const { toolCallId, toolName = '', argsTextDelta } = chunk.payload
    const { input, inputDelta } = rules?.display ?? {}
    if (input && !inputDelta) return []
    const context: TransformContext = { target: 'display', phase: 'input-delta', toolName, toolCallId, inputTextDelta: argsTextDelta }
    const delta = await this.#orWithheld(this.#apply(rules, context))
    if (delta === null) return []
    if (delta === undefined) return !inputDelta && this.#policyCovers('display') ? [] : this.#run.publish(chunk)
    return this.#run.publish({ ...chunk, payload: { ...chunk.payload, argsTextDelta: textOf(delta) } })
  }

  /** The calls as displays may show them. */
  async displayedCalls<C extends Call>(calls: readonly C[]): Promise<C[]> {
    return Promise.all(calls.map(async (call) => {
      if (this.#hasNoRule(this.#rulesOf(call.toolName))) return call
      const args = await this.#payload(call, 'display', 'input-available')
      return args === undefined ? call : { ...call, args }
    }))
  }

  /** Publishes the result of a call. Returns the invocation with what transcripts may show of it. */
  async publishResult(invocation: ToolInvocation, preliminary = false): Promise<ToolInvocation> {
    if (this.#hasNoRule(this.#rulesOf(invocation.toolName))) {
      await this.#run.publish(this.#resultChunk(invocation, preliminary))
      return invocation
    }
    await this.#run.publish(this.#resultChunk(await this.#transformed(invocation, 'display'), preliminary))
    return preliminary ? invocation : this.#withTranscript(invocation)
  }

  #resultChunk(invocation: ToolInvocation, preliminary: boolean): Chunk {
    const { toolCallId, toolName, args, result, errorText, errorCode, state, approval } = invocation
    const call = { toolCallId, toolName, args }
    if (state === 'output-denied') {
      const { by, reason } = approval ?? {}
      const decision = { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) }
      return this.#run.chunk('tool-output-denied', { ...call, ...decision })
    }
    const approved = approval ? { approval } : {}
    if (state === 'output-error') {
      const code = errorCode === undefined ? {} : { code: errorCode }
      return this.#run.chunk('tool-error', { ...call, error: { name: 'ToolError', message: errorText ?? '', ...code }, ...approved })
    }
    return this.#run.chunk('tool-result', { ...call, result: result ?? null, ...(preliminary ? { preliminary: true } : {}), ...approved })
  }

  /** Writes into the calls what transcripts may show of them. Called before they are stored. */
  async hideInTranscript(parts: readonly MessagePart[]): Promise<void> {
    for (const part of parts) if (part.type === 'tool-invocation') part.toolInvocation = await this.#withTranscript(part.toolInvocation)
  }

  async #withTranscript(invocation: ToolInvocation): Promise<ToolInvocation> {
    if (this.#hasNoRule(this.#rulesOf(invocation.toolName))) return invocation
    const seen = await this.#transformed(invocation, 'transcript')
    const transcript = {
      ...(seen.args === invocation.args ? {} : { args: seen.args }),
      ...(seen.result === invocation.result ? {} : { result: seen.result }),
      ...(seen.errorText === invocation.errorText ? {} : { errorText: seen.errorText }),
    }
    return Object.keys(transcript).length === 0 ? invocation : { ...invocation, transcript }
  }

  /** The chunk that asks for a decision about a suspended call. `more`: another one follows. */
  async suspensionChunk(waiting: WaitingCall, more: boolean): Promise<RunChunk> {
    const { toolCallId, toolName, args, payload = null, child, request } = waiting
    const nested = { ...(child ? { child } : {}), ...(more ? { more } : {}) }
    const input = await this.#payload(waiting, 'display', 'input-available')
    // The arguments of a call below are as its own run displays them.
    const asks = (shown: JSONValue) => (request ? { request: child ? request : { ...request, args: shown } } : {})
    if (waiting.kind === 'approval') {
      const shown = (await this.#payload(waiting, 'display', 'approval')) ?? input ?? args
      const approval = { toolCallId, toolName, args: shown, resumeSchema: approvalSchema, ...asks(shown), ...nested }
      return this.#run.chunk('tool-call-approval', approval)
    }
    const tool = this.#run.tools.tools.get(toolName)
    const resumeSchema = tool?.resume ? JSON.stringify(await tool.resume.jsonSchema()) : approvalSchema
    const suspendPayload = (await this.#payload(waiting, 'display', 'suspend', { suspendPayload: payload })) ?? payload
    const shown = input ?? args
    const suspension = { toolCallId, toolName, args: shown, suspendPayload, resumeSchema, ...asks(shown), ...nested }
    return this.#run.chunk('tool-call-suspended', suspension)
  }

  async #transformed(invocation: ToolInvocation, target: TransformTarget): Promise<ToolInvocation> {
    const { state, result: output, errorText } = invocation
    const more = { ...(output === undefined ? {} : { output }), ...(errorText === undefined ? {} : { error: errorText }) }
    const args = await this.#payload(invocation, target, 'input-available', more)
    const result = state === 'result' ? await this.#payload(invocation, target, 'output-available', more) : undefined
    const error = state === 'output-error' ? await this.#payload(invocation, target, 'error', more) : undefined
    // A text that a rule made is for readers.
    const { errorCode: _, ...shown } = invocation
    return {
      ...(error === undefined ? invocation : shown),
      ...(args === undefined ? {} : { args }),
      ...(result === undefined ? {} : { result }),
      ...(error === undefined ? {} : { errorText: textOf(error) }),
    }
  }

  #payload(
    call: Call, target: TransformTarget, phase: TransformPhase, more: Partial<TransformContext> = {},
  ): Promise<JSONValue | undefined> {
    const { toolName, toolCallId, args: input } = call
    return this.#orWithheld(this.#apply(this.#rulesOf(toolName), { target, phase, toolName, toolCallId, input, ...more }))
  }

  /** A rule that is still running when the run is aborted withholds its payload. */
  async #orWithheld(payload: Promise<JSONValue | undefined>): Promise<JSONValue | undefined> {
    try {
      return await this.#run.unlessAborted(payload)
    } catch {
      return withheldPayload
    }
  }

  /** The payload for the target; `undefined` when it is unchanged. */
  async #apply(rules: ToolTransform | undefined, context: TransformContext): Promise<JSONValue | undefined> {
    const own = rules?.[context.target]?.[ruleNames[context.phase]]
    const rule = own ?? (this.#policyCovers(context.target) ? this.#policy?.transformToolPayload : undefined)
    if (!rule) return undefined
    // A rule for an object can't find the secrets in malformed text.
    const malformed = isMalformed(context.input)
    if (malformed && (context.phase === 'input-available' || context.phase === 'approval')) return withheldPayload
    const { input, output, suspendPayload } = context
    try {
      // Copies: a rule may change its argument, and the model reads the original.
      const transformed = await rule({
        ...context,
        ...(input === undefined ? {} : { input: malformed ? withheldPayload : copyOf(input) }),
        ...(output === undefined ? {} : { output: copyOf(output) }),
        ...(suspendPayload === undefined ? {} : { suspendPayload: copyOf(suspendPayload) }),
      })
      return transformed === undefined ? undefined : toJSON(transformed, `What transform of tool '${context.toolName}' returned`)
    } catch (error) {
      // The payload must not show what the rule was to hide.
      this.#run.logger.error(`transform of tool '${context.toolName}' failed; its payload is withheld`, {
        phase: context.phase, error: describe(error),
      })
      return withheldPayload
    }
  }

  #rulesOf(toolName: string | undefined): ToolTransform | undefined {
    return toolName === undefined ? undefined : this.#run.tools.tools.get(toolName)?.tool.transform
  }

  /** A rule decides what displays show of the tool's payloads. */
  hasRule(toolName: string): boolean {
    return !this.#hasNoRule(this.#rulesOf(toolName))
  }

  /** Neither the agent nor the tool has a rule: payloads are published as they are. */
  #hasNoRule(rules: ToolTransform | undefined): boolean {
    return this.#policy === undefined && rules === undefined
  }

  #policyCovers(target: TransformTarget): boolean {
    return this.#policy !== undefined && (this.#policy.targets ?? ['display', 'transcript']).includes(target)
  }
}

const approvalSchema = JSON.stringify({
  type: 'object',
  properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
  required: ['approved'],
})

/** Input that was not valid JSON is stored as `{ malformed: text }`. */
function isMalformed(input: JSONValue | undefined): boolean {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return false
  return typeof input.malformed === 'string' && Object.keys(input).length === 1
}

function textOf(value: JSONValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The value as JSON, as it is stored and sent to the model. `undefined` becomes null. */
export function toJSON(value: unknown, subject: string): JSONValue {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'boolean') return value
  let text: string | undefined
  try {
    text = JSON.stringify(value, rejectCollections)
  } catch (cause) {
    throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
  if (text === undefined) throw new HeedError('tool_output_invalid', `${subject} can't be stored as JSON: it is a ${typeof value}.`)
  return JSON.parse(text) as JSONValue
}

/** JSON.stringify would write them as an empty object. */
function rejectCollections(_: string, value: unknown): unknown {
  if (value instanceof Map) throw new TypeError('it contains a Map. Use Object.fromEntries(map) instead')
  if (value instanceof Set) throw new TypeError('it contains a Set. Use [...set] instead')
  return value
}

/** A copy for code that may change it. */
export function copyOf<T extends JSONValue | undefined>(value: T): T {
  return typeof value === 'object' && value !== null ? structuredClone(value) : value
}

const outputTypes: readonly unknown[] = ['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied']

/** Validates the result of `toModelOutput` and encodes its bytes as base64, so that every prompt has the same text. */
export function encodeModelOutput(output: unknown, toolName: string): ModelToolOutput {
  const { type, value } = (output ?? {}) as { type?: unknown; value?: unknown }
  if (!outputTypes.includes(type)) throw invalidOutput(toolName, `{ type, value }, type being one of ${outputTypes.join(', ')}`)
  const expected = expectedValue(type, value)
  if (expected !== undefined) throw invalidOutput(toolName, `${expected} as the value of type '${String(type)}'`)
  if (type !== 'content') toJSON(value, `What toModelOutput of ${toolName} returned`)
  return storableOutput(output as ModelToolOutput)
}

function invalidOutput(toolName: string, expected: string): HeedError {
  return new HeedError('tool_output_invalid', `toModelOutput of ${toolName} must return ${expected}.`)
}

/** What the value of this type must be; undefined when it is valid. */
function expectedValue(type: unknown, value: unknown): string | undefined {
  if (type === 'text' || type === 'error-text') return typeof value === 'string' ? undefined : 'a string'
  if (type === 'json' || type === 'error-json') return value === undefined ? 'a defined value' : undefined
  if (type !== 'content') return undefined
  return Array.isArray(value) && value.every(isContentItem) ? undefined : 'an array of { type, … }'
}

function isContentItem(item: unknown): boolean {
  if (typeof item !== 'object' || item === null || !('type' in item) || typeof item.type !== 'string') return false
  return item.type !== 'text' || typeof (item as { text?: unknown }).text === 'string'
}
