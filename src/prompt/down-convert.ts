import type {
  LanguageModelV2Message,
  LanguageModelV2Prompt,
  LanguageModelV2ToolResultOutput,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ToolResultPart,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import { toBase64 } from '../message/file-data.ts'

/**
 * A prompt for a model of interface version 3. Files lose their tags; parts that version 3 lacks (custom parts, reasoning files, provider
 * references) are left out. Each message object is converted once.
 */
export function toV3Prompt(prompt: LanguageModelV4Prompt): LanguageModelV3Prompt {
  return prompt.flatMap(message => convertOnce(v3Messages, message, toV3))
}

/** A prompt for a model of interface version 2, which also lacks denied calls, approvals and files by URL in results. */
export function toV2Prompt(prompt: LanguageModelV4Prompt): LanguageModelV2Prompt {
  return prompt.flatMap(message => convertOnce(v2Messages, message, toV2))
}

const v3Messages = new WeakMap<LanguageModelV4Message, LanguageModelV3Message[]>()
const v2Messages = new WeakMap<LanguageModelV4Message, LanguageModelV2Message[]>()

function convertOnce<From extends object, To>(memo: WeakMap<From, To>, message: From, convert: (message: From) => To): To {
  let converted = memo.get(message)
  if (!converted) {
    converted = convert(message)
    memo.set(message, converted)
  }
  return converted
}

function toV3(message: LanguageModelV4Message): LanguageModelV3Message[] {
  if (message.role !== 'tool') return convertMessage(message, toV3Result)
  return unlessEmpty({ ...message, content: message.content.map(part => (part.type === 'tool-result' ? toV3Result(part) : part)) })
}

// The types of version 2 allow no undefined values in options, the only other difference. JSON has none.
function toV2(message: LanguageModelV4Message): LanguageModelV2Message[] {
  if (message.role !== 'tool') return convertMessage(message, toV2Result) as LanguageModelV2Message[]
  const results = message.content.flatMap(part => (part.type === 'tool-result' ? [toV2Result(part)] : []))
  return unlessEmpty({ ...message, content: results }) as LanguageModelV2Message[]
}

type Converted<Result> =
  | Extract<LanguageModelV4Message, { role: 'system' }>
  | { role: 'user'; content: Array<LanguageModelV4TextPart | OldFile> }
  | { role: 'assistant'; content: Array<KeptPart | OldFile | Result> }

function convertMessage<Result>(
  message: Exclude<LanguageModelV4Message, { role: 'tool' }>,
  result: (part: LanguageModelV4ToolResultPart) => Result,
): Array<Converted<Result>> {
  if (message.role === 'system') return [message]
  if (message.role === 'user') return unlessEmpty({ ...message, content: message.content.flatMap(userPart) })
  return unlessEmpty({ ...message, content: message.content.flatMap(part => assistantPart(part, result)) })
}

// Providers reject a message without content.
function unlessEmpty<M extends { content: readonly unknown[] }>(message: M): M[] {
  return message.content.length > 0 ? [message] : []
}

function userPart(part: LanguageModelV4TextPart | LanguageModelV4FilePart): Array<LanguageModelV4TextPart | OldFile> {
  return part.type === 'file' ? file(part) : [part]
}

type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number]
type KeptPart = Extract<AssistantPart, { type: 'text' | 'reasoning' | 'tool-call' }>

function assistantPart<Result>(
  part: AssistantPart,
  result: (part: LanguageModelV4ToolResultPart) => Result,
): Array<KeptPart | OldFile | Result> {
  switch (part.type) {
    case 'file':
      return file(part)
    case 'tool-result':
      return [result(part)]
    case 'custom':
    case 'reasoning-file':
      return []
    default:
      return [part]
  }
}

function toV3Result(part: LanguageModelV4ToolResultPart): LanguageModelV3ToolResultPart {
  return { ...part, output: toV3Output(part.output) }
}

function toV2Result(part: LanguageModelV4ToolResultPart) {
  return { ...part, output: toV2Output(part.output) }
}

interface OldFile extends Omit<LanguageModelV4FilePart, 'data'> {
  data: Uint8Array | string | URL
}

function file(part: LanguageModelV4FilePart): OldFile[] {
  const { data } = part
  const untagged = { ...part, mediaType: part.mediaType.includes('/') ? part.mediaType : `${part.mediaType}/*` }
  switch (data.type) {
    case 'data':
      return [{ ...untagged, data: data.data }]
    case 'url':
      return [{ ...untagged, data: data.url }]
    case 'text':
      return [{ ...untagged, data: toBase64(new TextEncoder().encode(data.text)) }]
    case 'reference':
      return []
  }
}

type Output = LanguageModelV4ToolResultPart['output']
type V3Output = LanguageModelV3ToolResultPart['output']
type V2Output = LanguageModelV2ToolResultOutput
type Item<O> = O extends { type: 'content'; value: Array<infer I> } ? I : never
type FileItem = Extract<Item<Output>, { type: 'file' }>

function toV3Output(output: Output): V3Output {
  if (output.type !== 'content') return output
  return { type: 'content', value: output.value.map(item => (item.type === 'file' ? v3File(item) : item)) }
}

function toV2Output(output: Output): V2Output {
  switch (output.type) {
    case 'content':
      return { type: 'content', value: output.value.flatMap(v2Item) }
    case 'execution-denied':
      return { type: 'error-text', value: output.reason ?? 'The call was denied.' }
    case 'text':
    case 'error-text':
      return { type: output.type, value: output.value }
    case 'json':
    case 'error-json':
      return { type: output.type, value: output.value }
  }
}

// Version 3 has separate part types for images.
function v3File({ data, mediaType, filename, providerOptions }: FileItem): Item<V3Output> {
  const options = providerOptions && { providerOptions }
  const isImage = /^image(\/|$)/.test(mediaType)
  switch (data.type) {
    case 'data': {
      const content = { data: base64(data.data), mediaType, ...options }
      if (isImage) return { type: 'image-data', ...content }
      return { type: 'file-data', ...content, ...(filename !== undefined && { filename }) }
    }
    case 'url':
      return { type: isImage ? 'image-url' : 'file-url', url: data.url.href, ...options }
    case 'reference':
      return { type: isImage ? 'image-file-id' : 'file-id', fileId: data.reference, ...options }
    case 'text':
      return { type: 'text', text: data.text, ...options }
  }
}

function v2Item(item: Item<Output>): Array<Item<V2Output>> {
  if (item.type === 'text') return [{ type: 'text', text: item.text }]
  if (item.type === 'custom') return []
  const { data, mediaType } = item
  switch (data.type) {
    case 'data':
      return [{ type: 'media', data: base64(data.data), mediaType }]
    case 'url':
      return [{ type: 'text', text: data.url.href }]
    case 'text':
      return [{ type: 'text', text: data.text }]
    case 'reference':
      return []
  }
}

function base64(data: Uint8Array | string): string {
  return typeof data === 'string' ? data : toBase64(data)
}
