import type { JSONObject, JSONValue, LanguageModelV4FinishReason, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import {
  frame, isNotEncoded, partNotStarted, sourceWithoutText, toolSchemaError, unsupportedPart, type WireAnswer, type WireProtocol,
  type WireWriter,
} from './wire-protocol.ts'
import { failureMessage, type ScriptedFailure } from '../script.ts'

/** Anthropic's Messages API. */
export const anthropicMessages: WireProtocol = {
  name: 'anthropic-messages',
  path: '/v1/messages',
  rejectionReason: ({ tools }) => toolSchemaError(tools),
  writer: (answer) => new MessagesWriter(answer),
  failure: anthropicFailure,
}

type SourcePart = Extract<LanguageModelV4StreamPart, { type: 'source' }>
type ToolCallPart = Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>

const stopReasons: Partial<Record<LanguageModelV4FinishReason['unified'], string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'content-filter': 'refusal',
  'tool-calls': 'tool_use',
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

class MessagesWriter implements WireWriter {
  readonly #answer: WireAnswer
  readonly #blocks = new Map<string, number>()
  readonly #content: JSONObject[] = []
  #citations: JSONObject[] = []
  #stopReason: string | null = null

  constructor(answer: WireAnswer) {
    this.#answer = answer
  }

  open(): string {
    return this.#event({ type: 'message_start', message: this.document() }) + this.#event({ type: 'ping' })
  }

  part(part: LanguageModelV4StreamPart): string {
    if (isNotEncoded(part)) return ''
    switch (part.type) {
      case 'ping':
        return this.#event({ type: 'ping' })
      case 'source':
        this.#citations.push(citation(part))
        return ''
      case 'text-start':
        return this.#start(part.id, { type: 'text', text: '' }) + this.#cite(part.id)
      case 'text-delta':
        return this.#delta(part.id, 'text', { type: 'text_delta', text: part.delta })
      case 'reasoning-start':
        return this.#start(part.id, { type: 'thinking', thinking: '', signature: '' })
      case 'reasoning-delta':
        return this.#delta(part.id, 'thinking', { type: 'thinking_delta', thinking: part.delta })
      case 'reasoning-end':
        return this.#sign(part.id) + this.#stop(part.id)
      case 'text-end':
        return this.#stop(part.id)
      case 'tool-input-start':
        return this.#startToolCall(part.id, part.toolName)
      case 'tool-input-delta':
        return this.#inputDelta(part.id, part.delta)
      case 'tool-input-end':
        return ''
      case 'tool-call':
        return this.#endToolCall(part)
      case 'finish':
        return this.#finish(part.finishReason)
      default:
        throw unsupportedPart(part, 'anthropic-messages')
    }
  }

  failure(failure: ScriptedFailure): string {
    return this.#event(anthropicFailure(failure))
  }

  document(): JSONObject {
    return {
      id: `msg_${this.#answer.index}`,
      type: 'message',
      role: 'assistant',
      model: this.#answer.model,
      content: [...this.#content],
      stop_reason: this.#stopReason,
      stop_sequence: null,
      usage: { ...this.#inputUsage(), ...(this.#stopReason ? this.#outputUsage() : { output_tokens: 0 }) },
    }
  }

  #start(key: string, block: JSONObject): string {
    const index = this.#content.push(block) - 1
    this.#blocks.set(key, index)
    return this.#event({ type: 'content_block_start', index, content_block: block })
  }

  #delta(key: string, field: string, delta: JSONObject): string {
    const block = this.#content[this.#index(key)]!
    block[field] = `${String(block[field] ?? '')}${String(delta[field])}`
    return this.#blockDelta(key, delta)
  }

  #blockDelta(key: string, delta: JSONObject): string {
    return this.#event({ type: 'content_block_delta', index: this.#index(key), delta })
  }

  #inputDelta(key: string, text: string): string {
    return this.#blockDelta(key, { type: 'input_json_delta', partial_json: text })
  }

  #stop(key: string): string {
    return this.#event({ type: 'content_block_stop', index: this.#index(key) })
  }

  #cite(key: string): string {
    const citations = this.#citations
    this.#citations = []
    if (citations.length) this.#content[this.#index(key)]!.citations = citations
    return citations.map((one) => this.#blockDelta(key, { type: 'citations_delta', citation: one })).join('')
  }

  #startToolCall(id: string, name: string): string {
    return this.#start(id, { type: 'tool_use', id, name, input: {} })
  }

  #endToolCall({ toolCallId, toolName, input }: ToolCallPart): string {
    const started = this.#blocks.has(toolCallId)
    const start = started ? '' : this.#startToolCall(toolCallId, toolName) + this.#inputDelta(toolCallId, input)
    this.#content[this.#index(toolCallId)]!.input = parseInput(input)
    return start + this.#stop(toolCallId)
  }

  #finish({ unified }: LanguageModelV4FinishReason): string {
    if (unified === 'interrupted') return ''
    if (this.#citations.length) throw sourceWithoutText('anthropic-messages')
    this.#stopReason = stopReasons[unified] ?? unified
    const delta = { stop_reason: this.#stopReason, stop_sequence: null }
    const usage = { ...this.#inputUsage(), ...this.#outputUsage() }
    return this.#event({ type: 'message_delta', delta, usage }) + this.#event({ type: 'message_stop' })
  }

  /** `input_tokens` is without the tokens that were read from or written to the cache. */
  #inputUsage(): JSONObject {
    const { inputTokens } = this.#answer.usage
    return {
      input_tokens: inputTokens.noCache ?? 0,
      cache_read_input_tokens: inputTokens.cacheRead ?? 0,
      cache_creation_input_tokens: inputTokens.cacheWrite ?? 0,
    }
  }

  #outputUsage(): JSONObject {
    const { total, reasoning } = this.#answer.usage.outputTokens
    return { output_tokens: total ?? 0, output_tokens_details: { thinking_tokens: reasoning ?? 0 } }
  }

  #sign(key: string): string {
    const signature = `signature_${this.#answer.index}_${this.#index(key)}`
    return this.#delta(key, 'signature', { type: 'signature_delta', signature })
  }

  #index(key: string): number {
    const index = this.#blocks.get(key)
    if (index === undefined) throw partNotStarted(key)
    return index
  }

  #event(data: JSONObject & { type?: JSONValue }): string {
    return frame(data, String(data.type))
  }
}

function anthropicFailure(failure: ScriptedFailure): JSONObject {
  const type = failure.type ?? errorTypes[failure.status] ?? 'api_error'
  return { type: 'error', error: { type, message: failureMessage(failure) } }
}

function citation(part: SourcePart): JSONObject {
  if (part.sourceType !== 'url') throw unsupportedPart(part, 'anthropic-messages')
  const { url, title = null } = part
  return { type: 'web_search_result_location', cited_text: '', url, title, encrypted_index: part.id }
}

/** The input as JSON; malformed input stays text. */
function parseInput(input: string): JSONValue {
  try {
    return JSON.parse(input) as JSONValue
  } catch {
    return input
  }
}
