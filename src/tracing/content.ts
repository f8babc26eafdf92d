import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { MessagePart } from '../message/message.ts'
import { redact, unlimited } from '../base/redact.ts'

/** What was said, in the form that the conventions have for it. Only asked for when a program wants it written down. */
export function inputMessages(prompt: readonly LanguageModelV4Message[]): string {
  return written(prompt.filter(({ role }) => role !== 'system').map(({ role, content }) => ({ role, parts: typeof content === 'string' ? [text(content)] : content.map(promptPart) })))
}

export function systemInstructions(prompt: readonly LanguageModelV4Message[]): string | undefined {
  const system = prompt.filter((message) => message.role === 'system')
  return system.length === 0 ? undefined : written(system.map(({ content }) => text(content)))
}

export function outputMessages(parts: readonly MessagePart[], finishReason: string): string {
  return written([{ role: 'assistant', parts: parts.flatMap(answerPart), finish_reason: finishReason }])
}

/** In full, but for the secrets in it: fields are known by their names before all is one text. */
export function written(value: unknown): string {
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
      // Whole files have no place in a trace.
      return { type: part.type, ...('mediaType' in part ? { mime_type: part.mediaType } : {}) }
  }
}

function answerPart(part: MessagePart): object[] {
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
