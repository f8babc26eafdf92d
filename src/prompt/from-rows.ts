import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4ReasoningFilePart,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import type { JSONValue } from '../base/json.ts'
import { ownAttachments } from '../message/attachments.ts'
import { hasOutcome, partsOf, stepsOf, textOf } from '../message/content.ts'
import { isURLText, parseDataURL } from '../message/file-data.ts'
import type {
  Attachment, FilePart, Message, MessageContent, MessagePart, ModelToolOutput, ProviderOptions, TextPart, ToolInvocation,
} from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import { escapeReservedTags, mayHaveTag, needsGuard, RESERVED_TAGS } from '../signals/tags.ts'
import { renderSignal } from '../signals/render.ts'
import { modelSignalOf } from '../signals/conversions.ts'

type Content<Role extends LanguageModelV4Message['role']> = Extract<LanguageModelV4Message, { role: Role }>['content']

/**
 * The prompt of these rows: the messages of each row, in order. Equal rows have equal bytes, and an appended row doesn't change the bytes
 * before it. A whole message is converted like its rows.
 *
 * Rows are immutable: the messages of a row object are converted once and shared between prompts. Don't change them.
 */
export function promptOf(rows: Iterable<MessageRow | Message>): LanguageModelV4Message[] {
  const prompt: LanguageModelV4Message[] = []
  for (const row of rows) prompt.push(...modelMessagesOf(row))
  return prompt
}

/** The converted rows for one list of reserved tags. */
class ConvertedRows {
  readonly reserved: readonly string[]
  readonly messages = new WeakMap<MessageRow | Message, readonly LanguageModelV4Message[]>()

  constructor(tags: readonly string[]) {
    this.reserved = [...RESERVED_TAGS, ...tags]
  }
}

const convertedRows = new WeakMap<readonly string[], ConvertedRows>()
const noTags: readonly string[] = []

/**
 * The messages of one row for a model; empty for a row that no model receives. `tags` are reserved by the agent, in addition to those of
 * Heed: plain text that imitates one is escaped.
 */
export function modelMessagesOf(row: MessageRow | Message, tags = noTags): readonly LanguageModelV4Message[] {
  const key = tags.length === 0 ? noTags : tags
  let converted = convertedRows.get(key)
  if (!converted) convertedRows.set(key, converted = new ConvertedRows(key))
  let messages = converted.messages.get(row)
  if (!messages) {
    messages = convert(row, converted.reserved)
    converted.messages.set(row, messages)
  }
  return messages
}

function convert(row: MessageRow | Message, reserved: readonly string[]): LanguageModelV4Message[] {
  switch (row.role) {
    case 'signal':
      return [renderSignal(modelSignalOf(row), reserved)]
    case 'assistant':
      return assistantMessages(row.content, reserved)
    case 'tool':
      return resultMessages(row.content.parts, reserved)
    case 'system':
      return systemMessage(row.content)
    case 'user':
      return imitatesTag(row.content, reserved) ? [renderSignal(modelSignalOf(row), reserved)] : userMessages(row.content)
    case 'context':
      return userMessages(row.content)
  }
}

/** Checked again here: messages can be saved and changed without the check of a send. */
function imitatesTag(content: MessageContent, reserved: readonly string[]): boolean {
  const parts = partsOf(content)
  if (!parts.some((part) => part.type === 'text' && mayHaveTag(part.text))) return false
  return needsGuard(parts.flatMap((part) => (part.type === 'text' ? { type: part.type, text: part.text } : [])), reserved)
}

function userMessages(content: MessageContent): LanguageModelV4Message[] {
  const parts: Content<'user'> = []
  for (const part of partsOf(content)) {
    if (part.type === 'file') parts.push(modelFile(part))
    else if (part.type === 'text' && isNotEmpty(part)) parts.push(textPart(part))
  }
  for (const attachment of ownAttachments(content)) parts.push(modelAttachment(attachment))
  return parts.length > 0 ? [withOptions({ role: 'user', content: parts }, content.providerMetadata)] : []
}

function systemMessage(content: MessageContent): LanguageModelV4Message[] {
  const text = textOf({ content })
  return text === '' ? [] : [withOptions({ role: 'system', content: text }, content.providerMetadata)]
}

/** One message for each step, followed by the results of its calls, where the content has them. */
function assistantMessages(content: MessageContent, reserved: readonly string[]): LanguageModelV4Message[] {
  const messages: LanguageModelV4Message[] = []
  for (const [index, { start, parts }] of stepsOf(partsOf(content)).entries()) {
    const output: Content<'assistant'> = []
    const results: Content<'tool'> = []
    for (const part of parts) {
      addAssistantPart(output, part)
      if (part.type !== 'tool-invocation' || !hasOutcome(part.toolInvocation)) continue
      // A provider needs its own results as it wrote them.
      if (part.providerExecuted) output.push(toolResult(part.toolInvocation, part.resultProviderMetadata, []))
      else results.push(toolResult(part.toolInvocation, part.resultProviderMetadata, reserved))
    }
    const options = start?.providerMetadata ?? (index === 0 ? content.providerMetadata : undefined)
    if (output.length > 0) messages.push(withOptions({ role: 'assistant', content: output }, options))
    if (results.length > 0) messages.push({ role: 'tool', content: results })
  }
  return messages
}

function addAssistantPart(output: Content<'assistant'>, part: MessagePart): void {
  const { providerMetadata: options } = part
  switch (part.type) {
    case 'text':
      if (isNotEmpty(part)) output.push(textPart(part))
      break
    case 'reasoning':
      if (part.reasoning !== '' || options) output.push(withOptions({ type: 'reasoning', text: part.reasoning }, options))
      break
    case 'file':
      output.push(part.reasoning ? modelReasoningFile(part) : modelFile(part))
      break
    case 'custom':
      output.push(withOptions({ type: 'custom', kind: part.kind }, options))
      break
    case 'tool-invocation': {
      const { toolCallId, providerCallId = toolCallId, toolName, args } = part.toolInvocation
      const call: LanguageModelV4ToolCallPart = { type: 'tool-call', toolCallId: providerCallId, toolName, input: args ?? {} }
      if (part.providerExecuted) call.providerExecuted = true
      output.push(withOptions(call, options))
    }
  }
}

/** In a tool row, `providerMetadata` is that of the result. */
function resultMessages(parts: readonly MessagePart[], reserved: readonly string[]): LanguageModelV4Message[] {
  const results: Content<'tool'> = []
  for (const part of parts) {
    if (part.type !== 'tool-invocation' || !hasOutcome(part.toolInvocation)) continue
    results.push(toolResult(part.toolInvocation, part.resultProviderMetadata ?? part.providerMetadata, reserved))
  }
  return results.length > 0 ? [{ role: 'tool', content: results }] : []
}

// Providers reject an empty text, but one with options may refer to state of the provider.
function isNotEmpty({ text, providerMetadata }: TextPart): boolean {
  return text !== '' || providerMetadata !== undefined
}

function textPart({ text, providerMetadata }: TextPart): LanguageModelV4TextPart {
  return withOptions({ type: 'text', text }, providerMetadata)
}

function withOptions<Into extends object>(into: Into, options: ProviderOptions | undefined): Into {
  return options ? { ...into, providerOptions: options } : into
}

/** A file as a model receives it: inline data where it was stored inline, a URL where it was a URL. */
function modelFile(part: FilePart): LanguageModelV4FilePart {
  const { data, mimeType, filename, reference, providerMetadata } = part
  const content: LanguageModelV4FilePart['data'] = reference ? { type: 'reference', reference } : fileData(data)
  return {
    type: 'file',
    ...(filename !== undefined && { filename }),
    data: content,
    mediaType: mediaTypeOf(mimeType, data),
    ...(providerMetadata && { providerOptions: providerMetadata }),
  }
}

/** A file that a model produced while it reasoned. */
function modelReasoningFile({ data, mimeType, providerMetadata }: FilePart): LanguageModelV4ReasoningFilePart {
  return {
    type: 'reasoning-file',
    data: fileData(data),
    mediaType: mediaTypeOf(mimeType, data),
    ...(providerMetadata && { providerOptions: providerMetadata }),
  }
}

function modelAttachment({ url, contentType, name }: Attachment): LanguageModelV4FilePart {
  return {
    type: 'file',
    ...(name !== undefined && { filename: name }),
    data: fileData(url),
    mediaType: mediaTypeOf(contentType, url),
  }
}

function fileData(data: string): LanguageModelV4ReasoningFilePart['data'] {
  const inline = parseDataURL(data)
  if (inline) return { type: 'data', data: inline.base64 }
  if (!isURLText(data) || !URL.canParse(data)) return { type: 'data', data }
  const url = new URL(data)
  // A provider with a URI scheme of its own needs the original text.
  return url.protocol.startsWith('http') || url.href === data ? { type: 'url', url } : { type: 'url', url, originalUrl: data }
}

function mediaTypeOf(stored: string | undefined, data: string): string {
  return stored || parseDataURL(data)?.mediaType || 'application/octet-stream'
}

/** The result of a call as a model receives it. */
function toolResult(
  invocation: ToolInvocation, options: ProviderOptions | undefined, reserved: readonly string[],
): LanguageModelV4ToolResultPart {
  const { toolCallId, providerCallId = toolCallId, toolName } = invocation
  const output = escapeOutput(outputOf(invocation), reserved)
  const part: LanguageModelV4ToolResultPart = { type: 'tool-result', toolCallId: providerCallId, toolName, output }
  if (options) part.providerOptions = options
  return part
}

function escapeOutput(output: ModelToolOutput, reserved: readonly string[]): ModelToolOutput {
  if (reserved.length === 0) return output
  if (output.type !== 'content') return escapeIn(output, reserved)
  const value = output.value.map((item) => (item.type === 'text' ? escapeIn(item, reserved) : item))
  return value.every((item, index) => item === output.value[index]) ? output : { ...output, value }
}

/** A copy of a value in which no text imitates a reserved tag; the value itself where none does. */
function escapeIn<T>(value: T, reserved: readonly string[]): T {
  if (typeof value === 'string') return escapeReservedTags(value, reserved) as T & string
  if (typeof value !== 'object' || value === null || value instanceof URL || ArrayBuffer.isView(value)) return value
  if (Array.isArray(value)) {
    const items = (value as unknown[]).map((item) => escapeIn(item, reserved))
    return items.every((item, index) => item === value[index]) ? value : (items as T)
  }
  let changed = false
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => {
    const escaped: [string, unknown] = [escapeReservedTags(name, reserved), escapeIn(item, reserved)]
    changed ||= escaped[0] !== name || escaped[1] !== item
    return escaped
  })
  return changed ? (Object.fromEntries(entries) as T) : value
}

function outputOf({ state, result, errorText, approval, modelOutput }: ToolInvocation): ModelToolOutput {
  if (modelOutput) return withURLs(modelOutput)
  switch (state) {
    case 'output-error':
      return { type: 'error-text', value: errorText ?? 'The tool failed.' }
    case 'output-denied':
      return { type: 'execution-denied', ...(approval?.reason !== undefined && { reason: approval.reason }) }
    default:
      return typeof result === 'string' ? { type: 'text', value: result } : { type: 'json', value: (result ?? null) as JSONValue }
  }
}

/** A row stores URLs as text; a provider needs `URL` objects. */
function withURLs(output: ModelToolOutput): ModelToolOutput {
  if (output.type !== 'content' || !output.value.some(hasURLText)) return output
  const value = output.value.map(item => {
    if (item.type !== 'file' || item.data.type !== 'url' || !hasURLText(item)) return item
    return { ...item, data: { ...item.data, url: new URL(item.data.url) } }
  })
  return { ...output, value }
}

type OutputItem = Extract<ModelToolOutput, { type: 'content' }>['value'][number]

function hasURLText(item: OutputItem): boolean {
  return item.type === 'file' && item.data.type === 'url' && typeof item.data.url === 'string' && URL.canParse(item.data.url)
}
