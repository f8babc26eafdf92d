import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import type { Usage } from '../run/chunk.ts'
import type { LanguageModel } from '../run/model/model.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import { inputMessages, outputMessages, systemInstructions } from './content.ts'
import type { Attributes, Context } from './open-telemetry.ts'
import { errorType, Operation } from './operation.ts'
import type { TracingOptions } from './options.ts'
import { telemetry, type Telemetry } from './telemetry.ts'

export interface ChatBegin {
  telemetry: Telemetry
  options: TracingOptions
  parent: Context
  /** Of the run it belongs to. */
  conversation: string | undefined
  /** Of its run, where it is asked for one. */
  step?: number
  /** What else it is asked for. */
  purpose?: 'title'
}

/** One model asked once, with all its retries. */
export class ChatTrace {
  readonly #operation: Operation
  readonly #options: TracingOptions
  readonly #measured: Attributes

  constructor(model: LanguageModel, call: LanguageModelV4CallOptions, { telemetry: found, options, parent, conversation, step, purpose }: ChatBegin) {
    this.#options = options
    this.#measured = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': providerName(model.provider), 'gen_ai.request.model': model.modelId }
    this.#operation = new Operation(found, {
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
        ...(options.recordInputs ? { 'gen_ai.input.messages': inputMessages(call.prompt), 'gen_ai.system_instructions': systemInstructions(call.prompt) } : {}),
      },
    })
  }

  within<T>(work: () => T): T {
    return this.#operation.within(work)
  }

  /** The first visible part is there. */
  answered(): void {
    this.#operation.set({ 'gen_ai.response.time_to_first_chunk': this.#operation.elapsed })
  }

  retried(error: unknown): void {
    this.#operation.event('heed.retry', { 'error.type': errorType(error) })
  }

  /** No answer came, and none will. */
  fail(error: unknown): void {
    this.#operation.fail(error)
    this.#end()
  }

  /** Nobody waits for the answer any more. */
  abandon(): void {
    this.#operation.set({ 'gen_ai.response.finish_reasons': ['aborted'] })
    this.#end()
  }

  /** The answer is over. `cut`: by whom it was not allowed to finish; `error`: why it broke. */
  end(said: StepRecorder, { cut, error }: { cut?: 'aborted' | 'interrupted' | undefined; error?: unknown }): void {
    const reason = cut ?? said.finishReason
    this.#operation.set({
      'gen_ai.response.model': said.modelId,
      'gen_ai.response.finish_reasons': [error === undefined ? reason : 'error'],
      ...usageAttributes(said.usage),
      ...(this.#options.recordOutputs ? { 'gen_ai.output.messages': outputMessages(said.parts, reason) } : {}),
    })
    if (error !== undefined) this.#operation.fail(error)
    this.#end(said)
  }

  #end(said?: StepRecorder): void {
    const { operationDuration, tokenUsage } = this.#operation.telemetry
    const measured = { ...this.#measured, ...(said?.modelId === undefined ? {} : { 'gen_ai.response.model': said.modelId }) }
    const { inputTokens = 0, outputTokens = 0 } = said?.usage ?? {}
    if (inputTokens > 0) tokenUsage?.record(inputTokens, { ...measured, 'gen_ai.token.type': 'input' })
    if (outputTokens > 0) tokenUsage?.record(outputTokens, { ...measured, 'gen_ai.token.type': 'output' })
    this.#operation.end(operationDuration, measured)
  }
}

/** Begins the trace of a model that is asked outside of a run, below whatever asks; nothing unless an SDK is registered. */
export function traceChat(options: TracingOptions | false | undefined, about: { conversation: string; purpose: 'title' }): ((model: LanguageModel, call: LanguageModelV4CallOptions) => ChatTrace) | undefined {
  const found = options === false ? undefined : telemetry()
  return found && ((model, call) => new ChatTrace(model, call, { ...about, telemetry: found, options: options || {}, parent: found.active() }))
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

/** Providers as the conventions name them. The longer beginning comes first. */
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

/** `openai.chat` is `openai`: what follows the first dot is which of its APIs. */
export function providerName(provider: string): string {
  return providers.find(([prefix]) => provider.startsWith(prefix))?.[1] ?? (provider.split('.', 1)[0] || provider)
}
