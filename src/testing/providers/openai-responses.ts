import type { JSONObject, LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { toBase64 } from '../../message/file-data.ts'
import {
  frame, functionSchemaError, isNotEncoded, openaiError, openaiFailure, partNotStarted, responseSchemaError, sourceWithoutText,
  unsupportedPart, type WireAnswer, type WireProtocol, type WireWriter,
} from './wire-protocol.ts'

/** OpenAI's Responses API. */
export const openaiResponses: WireProtocol = {
  name: 'openai-responses',
  path: '/v1/responses',
  rejectionReason: ({ text, tools }) =>
    responseSchemaError((text as { format?: JSONObject } | undefined)?.format) ?? functionSchemaError(tools),
  writer: (answer) => new ResponsesWriter(answer),
  failure: openaiFailure,
}

type ToolCallPart = Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>
type FilePart = Extract<LanguageModelV4StreamPart, { type: 'file' }>
type SourcePart = Extract<LanguageModelV4StreamPart, { type: 'source' }>

const incomplete: Partial<Record<LanguageModelV4FinishReason['unified'], string>> = {
  length: 'max_output_tokens',
  'content-filter': 'content_filter',
  other: 'other',
}

/** An output item that is being streamed: text, reasoning or a tool call. */
interface Item {
  position: number
  id: string
  text: string
}

class ResponsesWriter implements WireWriter {
  readonly #answer: WireAnswer
  readonly #items = new Map<string, Item>()
  readonly #output: JSONObject[] = []
  #annotations: JSONObject[] = []
  #ending: JSONObject = { status: 'in_progress' }
  #sequence = 0

  constructor(answer: WireAnswer) {
    this.#answer = answer
  }

  open(): string {
    return this.#event('response.created', { response: this.document() }) +
      this.#event('response.in_progress', { response: this.document() })
  }

  part(part: LanguageModelV4StreamPart): string {
    if (isNotEncoded(part)) return ''
    switch (part.type) {
      case 'ping':
        return this.#event('keepalive', {})
      case 'reasoning-start':
        return this.#startReasoning(part.id)
      case 'reasoning-delta':
        return this.#delta('response.reasoning_summary_text.delta', part, { summary_index: 0 })
      case 'reasoning-end':
        return this.#endReasoning(part.id)
      case 'source':
        this.#annotations.push(annotation(part))
        return ''
      case 'text-start':
        return this.#startText(part.id)
      case 'text-delta':
        return this.#delta('response.output_text.delta', part, { content_index: 0, logprobs: [] })
      case 'text-end':
        return this.#endText(part.id)
      case 'tool-input-start':
        return this.#startToolCall(part.id, part.toolName)
      case 'tool-input-delta':
        return this.#delta('response.function_call_arguments.delta', part, {})
      case 'tool-input-end': {
        const item = this.#item(part.id)
        return this.#event('response.function_call_arguments.done', { ...positionOf(item), arguments: item.text })
      }
      case 'tool-call':
        return this.#endToolCall(part)
      case 'file':
        return this.#image(part)
      case 'finish':
        return this.#finish(part.finishReason)
      default:
        throw unsupportedPart(part, 'openai-responses')
    }
  }

  failure(failure: Parameters<WireWriter['failure']>[0]): string {
    const { type: _, ...error } = openaiError(failure)
    return this.#event('error', error)
  }

  document(): JSONObject {
    return {
      id: `resp_${this.#answer.index}`,
      object: 'response',
      created_at: 0,
      model: this.#answer.model,
      error: null,
      incomplete_details: null,
      output: [...this.#output],
      usage: null,
      ...this.#ending,
    }
  }

  #startReasoning(id: string): string {
    const item = this.#add(id, 'rs')
    const summary = { type: 'summary_text', text: '' }
    return this.#added(item, { type: 'reasoning', id: item.id, summary: [] }) +
      this.#event('response.reasoning_summary_part.added', { ...positionOf(item), summary_index: 0, part: summary })
  }

  #endReasoning(id: string): string {
    const item = this.#item(id)
    const part = { type: 'summary_text', text: item.text }
    const sealed = includes(this.#answer.body, 'reasoning.encrypted_content') ? `encrypted_${item.id}` : null
    return this.#event('response.reasoning_summary_text.done', { ...positionOf(item), summary_index: 0, text: item.text }) +
      this.#event('response.reasoning_summary_part.done', { ...positionOf(item), summary_index: 0, part }) +
      this.#done(item, { type: 'reasoning', id: item.id, summary: [part], encrypted_content: sealed })
  }

  #startText(id: string): string {
    const item = this.#add(id, 'msg')
    const message = { type: 'message', id: item.id, role: 'assistant', status: 'in_progress', content: [] }
    const part = { type: 'output_text', text: '', annotations: [] }
    return this.#added(item, message) +
      this.#event('response.content_part.added', { ...positionOf(item), content_index: 0, part })
  }

  #endText(id: string): string {
    const item = this.#item(id)
    const annotations = this.#annotations
    this.#annotations = []
    const part = { type: 'output_text', text: item.text, annotations }
    const cited = annotations.map((annotation, position) => {
      const fields = { ...positionOf(item), content_index: 0, annotation_index: position, annotation }
      return this.#event('response.output_text.annotation.added', fields)
    })
    return cited.join('') +
      this.#event('response.output_text.done', { ...positionOf(item), content_index: 0, text: item.text, logprobs: [] }) +
      this.#event('response.content_part.done', { ...positionOf(item), content_index: 0, part }) +
      this.#done(item, { type: 'message', id: item.id, role: 'assistant', status: 'completed', content: [part] })
  }

  #startToolCall(id: string, name: string): string {
    const item = this.#add(id, 'fc')
    const call = { type: 'function_call', id: item.id, call_id: id, name, arguments: '', status: 'in_progress' }
    return this.#added(item, call)
  }

  #endToolCall({ toolCallId, toolName, input }: ToolCallPart): string {
    const start = this.#items.has(toolCallId) ? '' : this.#startToolCall(toolCallId, toolName)
    const item = this.#item(toolCallId)
    const named = { type: 'function_call', id: item.id, call_id: toolCallId, name: toolName }
    return start + this.#done(item, { ...named, arguments: input, status: 'completed' })
  }

  /** The result of the provider's image generation tool. */
  #image(part: FilePart): string {
    if (part.data.type !== 'data') throw unsupportedPart(part, 'openai-responses')
    const { data } = part.data
    const item = this.#add(`file ${this.#items.size}`, 'ig')
    const result = typeof data === 'string' ? data : toBase64(data)
    const call = { type: 'image_generation_call', id: item.id, status: 'completed', result }
    return this.#added(item, { ...call, status: 'in_progress', result: null }) +
      this.#event('response.image_generation_call.in_progress', positionOf(item)) +
      this.#event('response.image_generation_call.completed', positionOf(item)) +
      this.#done(item, call)
  }

  #finish({ unified }: LanguageModelV4FinishReason): string {
    if (unified === 'interrupted') return ''
    if (this.#annotations.length) throw sourceWithoutText('openai-responses')
    const usage = responsesUsage(this.#answer.usage)
    const reason = incomplete[unified]
    if (unified === 'error') {
      this.#ending = { status: 'failed', usage, error: openaiError({ status: 500, message: 'The scripted answer failed.' }) }
      return this.#event('response.failed', { response: this.document() })
    }
    this.#ending = reason ? { status: 'incomplete', usage, incomplete_details: { reason } } : { status: 'completed', usage }
    return this.#event(`response.${reason ? 'incomplete' : 'completed'}`, { response: this.document() })
  }

  #add(key: string, prefix: string): Item {
    const position = this.#items.size
    const item = { position, id: `${prefix}_${this.#answer.index}_${position}`, text: '' }
    this.#items.set(key, item)
    return item
  }

  #item(key: string): Item {
    const item = this.#items.get(key)
    if (!item) throw partNotStarted(key)
    return item
  }

  #delta(event: string, part: { id: string; delta: string }, fields: JSONObject): string {
    const item = this.#item(part.id)
    item.text += part.delta
    return this.#event(event, { ...positionOf(item), ...fields, delta: part.delta })
  }

  #added({ position }: Item, item: JSONObject): string {
    return this.#event('response.output_item.added', { output_index: position, item })
  }

  #done({ position }: Item, item: JSONObject): string {
    this.#output.push(item)
    return this.#event('response.output_item.done', { output_index: position, item })
  }

  #event(type: string, fields: JSONObject): string {
    return frame({ type, sequence_number: this.#sequence++, ...fields }, type)
  }
}

function positionOf(item: Item): JSONObject {
  return { item_id: item.id, output_index: item.position }
}

function includes(body: JSONObject, value: string): boolean {
  return Array.isArray(body.include) && body.include.includes(value)
}

function annotation(part: SourcePart): JSONObject {
  return part.sourceType === 'url'
    ? { type: 'url_citation', start_index: 0, end_index: 0, url: part.url, title: part.title ?? part.url }
    : { type: 'file_citation', file_id: part.id, filename: part.filename ?? part.title, index: 0 }
}

function responsesUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): JSONObject {
  const input = inputTokens.total ?? 0
  const output = outputTokens.total ?? 0
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: inputTokens.cacheRead ?? 0, cache_write_tokens: inputTokens.cacheWrite ?? 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: outputTokens.reasoning ?? 0 },
    total_tokens: input + output,
  }
}
