import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { redact, unlimited } from '../base/redact.ts'
import type { MessagePart } from '../message/message.ts'

/*
 * Prompts and responses in the JSON of the semantic conventions, for programs that record them.
 */

export function inputMessages(prompt: readonly LanguageModelV4Message[]): string {
  const messages = prompt.filter(({ role }) => role !== 'system')
  return redactedJSON(messages.map(({ role, content }) => {
    return { role, parts: typeof content === 'string' ? [text(content)] : content.map(promptPart) }
  }))
}

export function systemInstructions(prompt: readonly LanguageModelV4Message[]): string | undefined {
  const system = prompt.filter((message) => message.role === 'system')
  return system.length === 0 ? undefined : redactedJSON(system.map(({ content }) => text(content)))
}

export function outputMessages(parts: readonly MessagePart[], finishReason: string): string {
  return redactedJSON([{ role: 'assistant', parts: parts.flatMap(outputPart), finish_reason: finishReason }])
}

/** JSON of any length, without secrets. Redaction precedes encoding, since it also recognises secrets by the names of fields. */
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
