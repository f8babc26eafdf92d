import type {
  LanguageModelV2Message,
  LanguageModelV2Prompt,
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
import { toV2Output, toV3Output } from './down-convert-output.ts'

/**
 * A prompt for a model that speaks version 3 of the interface. Files lose their tags; what version 3 has no word for (custom
 * parts, files of reasoning, provider references) is left out. Each message is converted once.
 */
export function toV3Prompt(prompt: LanguageModelV4Prompt): LanguageModelV3Prompt {
  return prompt.flatMap(message => once(v3Messages, message, toV3))
}

/** The same for version 2, which also has no denied calls, no approvals and no files by URL in results. */
export function toV2Prompt(prompt: LanguageModelV4Prompt): LanguageModelV2Prompt {
  return prompt.flatMap(message => once(v2Messages, message, toV2))
}

const v3Messages = new WeakMap<LanguageModelV4Message, LanguageModelV3Message[]>()
const v2Messages = new WeakMap<LanguageModelV4Message, LanguageModelV2Message[]>()

function once<From extends object, To>(memo: WeakMap<From, To>, message: From, convert: (message: From) => To): To {
  let converted = memo.get(message)
  if (!converted) {
    converted = convert(message)
    memo.set(message, converted)
  }
  return converted
}

function toV3(message: LanguageModelV4Message): LanguageModelV3Message[] {
  if (message.role !== 'tool') return spokenMessages(message, toV3Result)
  return spoken({ ...message, content: message.content.map(part => (part.type === 'tool-result' ? toV3Result(part) : part)) })
}

// The types of version 2 differ besides only in that options have no undefined values. JSON has none either.
function toV2(message: LanguageModelV4Message): LanguageModelV2Message[] {
  if (message.role !== 'tool') return spokenMessages(message, toV2Result) as LanguageModelV2Message[]
  const results = message.content.flatMap(part => (part.type === 'tool-result' ? [toV2Result(part)] : []))
  return spoken({ ...message, content: results }) as LanguageModelV2Message[]
}

type Spoken<Result> =
  | Extract<LanguageModelV4Message, { role: 'system' }>
  | { role: 'user'; content: Array<LanguageModelV4TextPart | OldFile> }
  | { role: 'assistant'; content: Array<KeptPart | OldFile | Result> }

function spokenMessages<Result>(
  message: Exclude<LanguageModelV4Message, { role: 'tool' }>,
  result: (part: LanguageModelV4ToolResultPart) => Result,
): Array<Spoken<Result>> {
  if (message.role === 'system') return [message]
  if (message.role === 'user') return spoken({ ...message, content: message.content.flatMap(userPart) })
  return spoken({ ...message, content: message.content.flatMap(part => assistantPart(part, result)) })
}

// A message of which nothing is left would be refused.
function spoken<M extends { content: readonly unknown[] }>(message: M): M[] {
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
