import type { JSONObject, LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import { generated } from '../step-parts.ts'
import {
  frame, functionSchemaError, isNotEncoded, openaiFailure, partNotStarted, responseSchemaError, unsupportedPart, type WireAnswer,
  type WireProtocol, type WireWriter,
} from './wire-protocol.ts'

/** OpenAI's Chat Completions API. Reasoning is sent as `reasoning_content`, as compatible servers do. */
export const openaiChat: WireProtocol = {
  name: 'openai-chat',
  path: '/v1/chat/completions',
  rejectionReason: ({ response_format: format, tools }) =>
    responseSchemaError((format as { json_schema?: JSONObject } | undefined)?.json_schema) ?? functionSchemaError(tools),
  writer: chatWriter,
  failure: openaiFailure,
}

const finishReasons: Partial<Record<LanguageModelV4FinishReason['unified'], string>> = {
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
}

function chatWriter(answer: WireAnswer): WireWriter {
  const toolCalls: string[] = []
  const envelope = (object: string) => ({ id: `chatcmpl_${answer.index}`, object, created: 0, model: answer.model })
  const chunk = (fields: JSONObject) => frame({ ...envelope('chat.completion.chunk'), ...fields })
  const delta = (content: JSONObject, finish: string | null = null) =>
    chunk({ choices: [{ index: 0, delta: content, finish_reason: finish }] })

  const startToolCall = (id: string, name: string) => {
    const index = toolCalls.push(id) - 1
    return delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] })
  }
  const toolInput = (id: string, text: string) => {
    const index = toolCalls.indexOf(id)
    if (index === -1) throw partNotStarted(id)
    return delta({ tool_calls: [{ index, function: { arguments: text } }] })
  }

  return {
    open: () => delta({ role: 'assistant', content: null }),
    part(part) {
      if (isNotEncoded(part)) return ''
      switch (part.type) {
        case 'text-start':
        case 'text-end':
        case 'reasoning-start':
        case 'reasoning-end':
        case 'tool-input-end':
        case 'ping':
          return ''
        case 'text-delta':
          return delta({ content: part.delta })
        case 'reasoning-delta':
          return delta({ reasoning_content: part.delta })
        case 'source':
          return delta({ annotations: [annotation(part)] })
        case 'tool-input-start':
          return startToolCall(part.id, part.toolName)
        case 'tool-input-delta':
          return toolInput(part.id, part.delta)
        case 'tool-call':
          if (toolCalls.includes(part.toolCallId)) return ''
          return startToolCall(part.toolCallId, part.toolName) + toolInput(part.toolCallId, part.input)
        case 'finish': {
          if (part.finishReason.unified === 'interrupted') return ''
          const last = delta({}, chatFinishReason(part.finishReason))
          return last + chunk({ choices: [], usage: chatUsage(part.usage) }) + frame('[DONE]')
        }
        default:
          throw unsupportedPart(part, 'openai-chat')
      }
    },
    failure: (failure) => frame(openaiFailure(failure)),
    document: () => ({ ...envelope('chat.completion'), ...completion(answer.parts) }),
  }
}

function completion(parts: readonly LanguageModelV4StreamPart[]): JSONObject {
  const { content, finishReason, usage } = generated(parts)
  const text = content.filter((part) => part.type === 'text')
  const reasoning = content.filter((part) => part.type === 'reasoning')
  const toolCalls = content.filter((part) => part.type === 'tool-call')
  const sources = content.filter((part) => part.type === 'source')
  const message = {
    role: 'assistant',
    content: text.length ? text.map((part) => part.text).join('') : null,
    ...(reasoning.length ? { reasoning_content: reasoning.map((part) => part.text).join('') } : {}),
    ...(sources.length ? { annotations: sources.map(annotation) } : {}),
    ...(toolCalls.length
      ? {
          tool_calls: toolCalls.map(({ toolCallId, toolName, input }) => ({
            id: toolCallId,
            type: 'function',
            function: { name: toolName, arguments: input },
          })),
        }
      : {}),
  }
  return { choices: [{ index: 0, message, finish_reason: chatFinishReason(finishReason) }], usage: chatUsage(usage) }
}

function annotation(part: Extract<LanguageModelV4StreamPart, { type: 'source' }>): JSONObject {
  if (part.sourceType !== 'url') throw unsupportedPart(part, 'openai-chat')
  return {
    type: 'url_citation',
    url_citation: { start_index: 0, end_index: 0, url: part.url, title: part.title ?? part.url },
  }
}

function chatFinishReason({ unified }: LanguageModelV4FinishReason): string {
  return finishReasons[unified] ?? unified
}

function chatUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): JSONObject {
  const input = inputTokens.total ?? 0
  const output = outputTokens.total ?? 0
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: inputTokens.cacheRead ?? 0, cache_write_tokens: inputTokens.cacheWrite ?? 0 },
    completion_tokens_details: { reasoning_tokens: outputTokens.reasoning ?? 0 },
  }
}
