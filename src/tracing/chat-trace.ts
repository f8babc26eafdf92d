import type { LanguageModelV4CallOptions, LanguageModelV4Message } from '@ai-sdk/provider'
import { redact, unlimited } from '../base/redact.ts'
import type { MessagePart } from '../message/message.ts'
import type { Usage } from '../message/chunk.ts'
import type { LanguageModel } from '../run/model/model.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { errorType, Operation } from './operation.ts'
import type { TracingOptions } from './options.ts'
import { telemetryFor, type Attributes, type Context, type Telemetry } from './telemetry.ts'

/** What a call outside of a run is for. */
type ChatPurpose = 'title' | 'annotate' | 'judge'

interface ChatStart {
  telemetry: Telemetry
  options: TracingOptions
  parent: Context
  /** The id of the thread. */
  conversation: string | undefined
  /** The step of the run, for a call of a run. */
  step?: number
  /** The purpose of a call outside of a run. */
  purpose?: ChatPurpose
}

/** The span of one model call, with its retries. */
export class ChatTrace {
  readonly #operation: Operation
  readonly #options: TracingOptions
  readonly #measured: Attributes

  constructor(
    model: LanguageModel, call: LanguageModelV4CallOptions, { telemetry, options, parent, conversation, step, purpose }: ChatStart,
  ) {
    this.#options = options
    this.#measured = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': providerName(model.provider),
      'gen_ai.request.model': model.modelId,
    }
    this.#operation = new Operation(telemetry, {
      name: `chat ${model.modelId}`,
      kind: 2,
      parent,
      options,
      attributes: {
        ...this.#measured,
        'gen_ai.conversation.id': conversation,
        'gen_ai.output.type': call.responseFormat?.type,
        'gen_ai.request.stream': true,
        'gen_ai.request.max_tokens': call.maxOutputTokens,
        'gen_ai.request.temperature': call.temperature,
        'gen_ai.request.top_p': call.topP,
        'gen_ai.request.top_k': call.topK,
        'gen_ai.request.frequency_penalty': call.frequencyPenalty,
        'gen_ai.request.presence_penalty': call.presencePenalty,
        'gen_ai.request.stop_sequences': call.stopSequences,
        'gen_ai.request.seed': call.seed,
        'heed.step': step,
        'heed.purpose': purpose,
        ...(options.recordInputs ? inputAttributes(call.prompt) : {}),
      },
    })
  }

  within<T>(work: () => T): T {
    return this.#operation.within(work)
  }

  /** Records the time of the first visible part. */
  firstChunk(): void {
    this.#operation.set({ 'gen_ai.response.time_to_first_chunk': this.#operation.elapsed })
  }

  retried(error: unknown): void {
    this.#operation.event('heed.retry', { 'error.type': errorType(error) })
  }

  /** Ends the span of a call that failed after its retries. */
  fail(error: unknown): void {
    this.#operation.fail(error)
    this.#end()
  }

  /** Ends the span of a call that was aborted before the first chunk. */
  abandon(): void {
    this.#operation.set({ 'gen_ai.response.finish_reasons': ['aborted'] })
    this.#end()
  }

  /** Ends the span after the stream. `cut`: why the stream was stopped; `error`: why it broke. */
  end(output: StepRecorder, { cut, error }: { cut?: 'aborted' | 'interrupted' | undefined; error?: unknown }): void {
    const reason = cut ?? output.finishReason
    this.#operation.set({
      'gen_ai.response.model': output.modelId,
      'gen_ai.response.finish_reasons': [error === undefined ? reason : 'error'],
      ...usageAttributes(output.usage),
      ...(this.#options.recordOutputs ? { 'gen_ai.output.messages': outputMessages(output.parts, reason) } : {}),
    })
    if (error !== undefined) this.#operation.fail(error)
    this.#end(output)
  }

  #end(output?: StepRecorder): void {
    const { operationDuration, tokenUsage } = this.#operation.telemetry
    const measured = { ...this.#measured, ...(output?.modelId === undefined ? {} : { 'gen_ai.response.model': output.modelId }) }
    const { inputTokens = 0, outputTokens = 0 } = output?.usage ?? {}
    if (inputTokens > 0) tokenUsage?.record(inputTokens, { ...measured, 'gen_ai.token.type': 'input' })
    if (outputTokens > 0) tokenUsage?.record(outputTokens, { ...measured, 'gen_ai.token.type': 'output' })
    this.#operation.end(operationDuration, measured)
  }
}

type StartChat = (model: LanguageModel, call: LanguageModelV4CallOptions) => ChatTrace

/** Traces model calls outside of a run, below the active span; undefined unless an SDK is registered. */
export function traceChat(
  options: TracingOptions | false | undefined, about: { conversation: string; purpose: ChatPurpose },
): StartChat | undefined {
  const telemetry = telemetryFor(options)
  if (!telemetry) return undefined
  return (model, call) => new ChatTrace(model, call, { ...about, telemetry, options: options || {}, parent: telemetry.active() })
}

function inputAttributes(prompt: LanguageModelV4CallOptions['prompt']): Attributes {
  return { 'gen_ai.input.messages': inputMessages(prompt), 'gen_ai.system_instructions': systemInstructions(prompt) }
}

export function usageAttributes({ inputTokens, outputTokens, reasoningTokens, cachedInputTokens, cacheWriteTokens }: Usage): Attributes {
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.reasoning.output_tokens': reasoningTokens || undefined,
    'gen_ai.usage.cache_read.input_tokens': cachedInputTokens || undefined,
    'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens || undefined,
  }
}

/** Prefixes of provider ids with the provider names of the semantic conventions. A longer prefix precedes a shorter one. */
const providers: ReadonlyArray<readonly [string, string]> = [
  ['amazon-bedrock', 'aws.bedrock'],
  ['azure', 'azure.ai.openai'],
  ['google.vertex', 'gcp.vertex_ai'],
  ['google-vertex', 'gcp.vertex_ai'],
  ['vertex', 'gcp.vertex_ai'],
  ['google', 'gcp.gemini'],
  ['mistral', 'mistral_ai'],
  ['moonshot', 'moonshot_ai'],
  ['xai', 'x_ai'],
]

/** `openai.chat` becomes `openai`: the API of a provider follows the first dot. */
export function providerName(provider: string): string {
  return providers.find(([prefix]) => provider.startsWith(prefix))?.[1] ?? (provider.split('.', 1)[0] || provider)
}

/*
 * Prompts and responses in the JSON of the semantic conventions, for programs that record them.
 */

function inputMessages(prompt: readonly LanguageModelV4Message[]): string {
  const messages = prompt.filter(({ role }) => role !== 'system')
  return redactedJSON(messages.map(({ role, content }) => {
    return { role, parts: typeof content === 'string' ? [text(content)] : content.map(promptPart) }
  }))
}

function systemInstructions(prompt: readonly LanguageModelV4Message[]): string | undefined {
  const system = prompt.filter((message) => message.role === 'system')
  return system.length === 0 ? undefined : redactedJSON(system.map(({ content }) => text(content)))
}

function outputMessages(parts: readonly MessagePart[], finishReason: string): string {
  return redactedJSON([{ role: 'assistant', parts: parts.flatMap(outputPart), finish_reason: finishReason }])
}

/** JSON of any length, without secrets. Redaction precedes encoding, since it also recognizes secrets by the names of fields. */
export function redactedJSON(value: unknown): string {
  return JSON.stringify(redact(value, unlimited)) ?? 'null'
}

type PromptPart = Exclude<LanguageModelV4Message['content'], string>[number]

function promptPart(part: PromptPart): object {
  switch (part.type) {
    case 'text':
      return text(part.text)
    case 'reasoning':
      return { type: 'reasoning', content: part.text }
    case 'tool-call':
      return { type: 'tool_call', id: part.toolCallId, name: part.toolName, arguments: part.input }
    case 'tool-result':
      return { type: 'tool_call_response', id: part.toolCallId, response: part.output }
    default:
      // A trace has the type of a file, not its data.
      return { type: part.type, ...('mediaType' in part ? { mime_type: part.mediaType } : {}) }
  }
}

function outputPart(part: MessagePart): object[] {
  switch (part.type) {
    case 'text':
      return [text(part.text)]
    case 'reasoning':
      return [{ type: 'reasoning', content: part.reasoning }]
    case 'tool-invocation': {
      const { toolCallId, toolName, args } = part.toolInvocation
      return [{ type: 'tool_call', id: toolCallId, name: toolName, arguments: args }]
    }
    default:
      return []
  }
}

function text(content: string): object {
  return { type: 'text', content }
}
