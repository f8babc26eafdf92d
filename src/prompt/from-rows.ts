import type { LanguageModelV4Message, LanguageModelV4TextPart, LanguageModelV4ToolCallPart } from '@ai-sdk/provider'
import { ownAttachments } from '../message/attachments.ts'
import { hasOutcome, partsOf, stepsOf, textOf } from '../message/content.ts'
import type { Message, MessageContent, MessagePart, ProviderOptions, TextPart } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { needsGuard, RESERVED_TAGS } from '../signals/forgery.ts'
import { renderSignal } from '../signals/render.ts'
import { modelSignalOf } from '../signals/row.ts'
import { modelAttachment, modelFile, modelReasoningFile } from './file-part.ts'
import { toolResult } from './tool-result.ts'

type Content<Role extends LanguageModelV4Message['role']> = Extract<LanguageModelV4Message, { role: Role }>['content']

/**
 * The prompt for these rows: the messages of each, one after the other. Same rows, same bytes; a row that is appended leaves the
 * bytes before it as they are. A message is converted like its rows.
 *
 * Rows are taken to be immutable: the messages of a row object are made once and shared. Don't change them.
 */
export function promptOf(rows: Iterable<MessageRow | Message>): LanguageModelV4Message[] {
  const prompt: LanguageModelV4Message[] = []
  for (const row of rows) prompt.push(...modelMessagesOf(row))
  return prompt
}

/** What was made of rows before, for those who reserve the same tags. */
class Made {
  readonly reserved: readonly string[]
  readonly messages = new WeakMap<MessageRow | Message, readonly LanguageModelV4Message[]>()

  constructor(tags: readonly string[]) {
    this.reserved = [...RESERVED_TAGS, ...tags]
  }
}

const made = new WeakMap<readonly string[], Made>()
const noTags: readonly string[] = []

/** What one row is to a model. Nothing, for a row with nothing that a model may see. `tags` are those of an agent's own, which nobody may imitate either. */
export function modelMessagesOf(row: MessageRow | Message, tags = noTags): readonly LanguageModelV4Message[] {
  const key = tags.length === 0 ? noTags : tags
  let before = made.get(key)
  if (!before) made.set(key, before = new Made(key))
  let messages = before.messages.get(row)
  if (!messages) {
    messages = convert(row, before.reserved)
    before.messages.set(row, messages)
  }
  return messages
}

function convert(row: MessageRow | Message, reserved: readonly string[]): LanguageModelV4Message[] {
  switch (row.role) {
    case 'signal':
      return [renderSignal(modelSignalOf(row), reserved)]
    case 'assistant':
      return assistantMessages(row.content)
    case 'tool':
      return resultMessages(row.content.parts)
    case 'system':
      return systemMessage(row.content)
    case 'user':
      return imitatesTag(row.content, reserved) ? [renderSignal(modelSignalOf(row), reserved)] : userMessages(row.content)
    case 'context':
      return userMessages(row.content)
  }
}

/** Messages may be saved and changed past the door where input is marked: nothing that a user says is shown as one of these tags. */
function imitatesTag(content: MessageContent, reserved: readonly string[]): boolean {
  const parts = partsOf(content)
  if (!parts.some((part) => part.type === 'text' && part.text.includes('<'))) return false
  return needsGuard(parts.flatMap((part) => (part.type === 'text' ? { type: part.type, text: part.text } : [])), reserved)
}

function userMessages(content: MessageContent): LanguageModelV4Message[] {
  const said: Content<'user'> = []
  for (const part of partsOf(content)) {
    if (part.type === 'file') said.push(modelFile(part))
    else if (part.type === 'text' && saysSomething(part)) said.push(textPart(part))
  }
  for (const attachment of ownAttachments(content)) said.push(modelAttachment(attachment))
  return said.length > 0 ? [withOptions({ role: 'user', content: said }, content.providerMetadata)] : []
}

function systemMessage(content: MessageContent): LanguageModelV4Message[] {
  const text = textOf({ content })
  return text === '' ? [] : [withOptions({ role: 'system', content: text }, content.providerMetadata)]
}

/** One message a step, and after it the results of its calls, where the content has them. */
function assistantMessages(content: MessageContent): LanguageModelV4Message[] {
  const messages: LanguageModelV4Message[] = []
  for (const [index, { start, parts }] of stepsOf(partsOf(content)).entries()) {
    const said: Content<'assistant'> = []
    const results: Content<'tool'> = []
    for (const part of parts) {
      addAssistantPart(said, part)
      if (part.type !== 'tool-invocation' || !hasOutcome(part.toolInvocation)) continue
      const result = toolResult(part.toolInvocation, part.resultProviderMetadata)
      if (part.providerExecuted) said.push(result)
      else results.push(result)
    }
    const options = start?.providerMetadata ?? (index === 0 ? content.providerMetadata : undefined)
    if (said.length > 0) messages.push(withOptions({ role: 'assistant', content: said }, options))
    if (results.length > 0) messages.push({ role: 'tool', content: results })
  }
  return messages
}

function addAssistantPart(said: Content<'assistant'>, part: MessagePart): void {
  const { providerMetadata: options } = part
  switch (part.type) {
    case 'text':
      if (saysSomething(part)) said.push(textPart(part))
      break
    case 'reasoning':
      if (part.reasoning !== '' || options) said.push(withOptions({ type: 'reasoning', text: part.reasoning }, options))
      break
    case 'file':
      said.push(part.reasoning ? modelReasoningFile(part) : modelFile(part))
      break
    case 'custom':
      said.push(withOptions({ type: 'custom', kind: part.kind }, options))
      break
    case 'tool-invocation': {
      const { toolCallId, toolName, args } = part.toolInvocation
      const call: LanguageModelV4ToolCallPart = { type: 'tool-call', toolCallId, toolName, input: args ?? {} }
      if (part.providerExecuted) call.providerExecuted = true
      said.push(withOptions(call, options))
    }
  }
}

/** In a tool row, what the provider said is what it said of the result. */
function resultMessages(parts: readonly MessagePart[]): LanguageModelV4Message[] {
  const results: Content<'tool'> = []
  for (const part of parts) {
    if (part.type !== 'tool-invocation' || !hasOutcome(part.toolInvocation)) continue
    results.push(toolResult(part.toolInvocation, part.resultProviderMetadata ?? part.providerMetadata))
  }
  return results.length > 0 ? [{ role: 'tool', content: results }] : []
}

// Providers refuse an empty text, but one with options may stand for something the provider remembers.
function saysSomething({ text, providerMetadata }: TextPart): boolean {
  return text !== '' || providerMetadata !== undefined
}

function textPart({ text, providerMetadata }: TextPart): LanguageModelV4TextPart {
  return withOptions({ type: 'text', text }, providerMetadata)
}

function withOptions<Into extends object>(into: Into, options: ProviderOptions | undefined): Into {
  return options ? { ...into, providerOptions: options } : into
}
