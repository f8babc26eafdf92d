import { isObject, type JSONValue } from '../../base/json.ts'
import { mediaTypeOf, readFileData } from '../file-data.ts'
import type { FilePart, MessagePart, ReasoningPart, SourcePart } from '../message.ts'
import type { Raw } from './raw.ts'
import { asJSON, firstString, providerMetadataOf } from './raw.ts'
import { readCall, readInterfaceCall, readResult, readStoredInvocation } from './tool-part.ts'

/**
 * A part as it is stored, from any form of callers and older rows: stored parts, parts of a user interface, parts of model messages. An
 * empty list is a part with nothing to store. A string is the reason why the part can't be read.
 */
export function readPart(raw: unknown): MessagePart[] | string {
  if (!isObject(raw)) return `a part is an object with a \`type\`, not ${raw === null ? 'null' : typeof raw}`
  if (typeof raw.type !== 'string') return 'a part needs a `type`'
  const part = partOf(raw, raw.type)
  if (typeof part === 'string') return part
  return part ? [part] : []
}

function partOf(raw: Raw, type: string): MessagePart | undefined | string {
  switch (type) {
    case 'text':
      return typeof raw.text === 'string' ? { type, text: raw.text, ...providerMetadataOf(raw) } : 'a text part needs `text`'
    case 'reasoning':
      return readReasoning(raw)
    case 'redacted-reasoning':
      return { type: 'reasoning', reasoning: '', providerMetadata: { anthropic: { redactedData: asJSON(raw.data) } } }
    case 'file':
      return readFile(raw, raw.data ?? raw.url)
    case 'image':
      return readFile(raw, raw.image ?? raw.data, 'image/*')
    case 'reasoning-file':
      return readFile({ ...raw, reasoning: true }, raw.data ?? raw.url)
    case 'step-start':
      return { type, ...providerMetadataOf(raw) }
    case 'source':
      if (!isSource(raw.source)) return 'a source part needs a `source` of type url or document'
      return { type, source: raw.source, ...providerMetadataOf(raw) }
    case 'source-url':
    case 'source-document':
      return readInterfaceSource(raw, type)
    case 'error':
      return readError(raw)
    case 'custom':
      return isKind(raw.kind) ? { type, kind: raw.kind, ...providerMetadataOf(raw) } : 'a custom part needs a `kind` such as provider.name'
    case 'steering-message':
      return undefined
  }
  if (isDataType(type)) return readData(raw, type)
  return readTool(raw, type)
}

function readTool(raw: Raw, type: string): MessagePart | undefined | string {
  // A tool of a user interface may be named `call` or `result`; only its part has a state.
  if (type === 'dynamic-tool' || (type.startsWith('tool-') && typeof raw.state === 'string')) return readInterfaceCall(raw)
  if (type === 'tool-invocation') return readStoredInvocation(raw)
  if (type === 'tool-call') return readCall(raw)
  if (type === 'tool-result') return readResult(raw)
  if (type === 'tool-approval-request' || type === 'tool-approval-response') return undefined
  return unknownType(type)
}

/** The reason that `readPart` returns for an unknown type, as opposed to a malformed part of a known type. */
export function unknownType(type: unknown): string {
  return `unknown part type ${JSON.stringify(type)}`
}

function readReasoning(raw: Raw): ReasoningPart | string {
  const text = firstString(raw.reasoning, raw.text)
  const options = providerMetadataOf(raw)
  if (!Array.isArray(raw.details)) {
    return text === undefined ? 'a reasoning part needs `text`' : { type: 'reasoning', reasoning: text, ...options }
  }
  const details = raw.details.filter(isObject)
  const texts = details.flatMap(detail => (typeof detail.text === 'string' ? [detail.text] : []))
  const signature = firstString(...details.map(detail => detail.signature))
  const redacted = firstString(...details.map(detail => (detail.type === 'redacted' ? detail.data : undefined)))
  const proof = redacted !== undefined ? { redactedData: redacted } : signature !== undefined ? { signature } : undefined
  return {
    type: 'reasoning',
    reasoning: text || texts.join(''),
    ...(options.providerMetadata ? options : proof && { providerMetadata: { anthropic: proof } }),
  }
}

function readFile(raw: Raw, source: unknown, anyType?: string): FilePart | string {
  const file = readFileData(raw.reference ?? raw.providerReference ?? source)
  if (typeof file === 'string') return file
  const filename = firstString(raw.filename, raw.name)
  const mimeType = firstString(raw.mediaType, raw.mimeType, raw.contentType) ?? mediaTypeOf(file.data) ?? anyType
  if (mimeType === undefined) return 'a file part needs a `mediaType`'
  return {
    type: 'file',
    ...file,
    mimeType,
    ...(filename !== undefined && { filename }),
    ...(raw.reasoning === true && { reasoning: true }),
    ...providerMetadataOf(raw),
  }
}

function readInterfaceSource(raw: Raw, type: 'source-url' | 'source-document'): SourcePart | string {
  const { sourceId: id, url, title, mediaType, filename } = raw
  const named = typeof title === 'string' ? { title } : {}
  if (typeof id !== 'string') return `a ${type} part needs a \`sourceId\``
  if (type === 'source-url') {
    if (typeof url !== 'string') return 'a source-url part needs a `url`'
    return { type: 'source', source: { sourceType: 'url', id, url, ...named }, ...providerMetadataOf(raw) }
  }
  if (typeof mediaType !== 'string') return 'a source-document part needs a `mediaType`'
  const file = typeof filename === 'string' ? { filename } : {}
  return { type: 'source', source: { sourceType: 'document', id, mediaType, title: '', ...named, ...file }, ...providerMetadataOf(raw) }
}

function isSource(source: unknown): source is SourcePart['source'] {
  if (!isObject(source) || typeof source.id !== 'string') return false
  if (source.sourceType === 'url') return typeof source.url === 'string'
  return source.sourceType === 'document' && typeof source.mediaType === 'string' && typeof source.title === 'string'
}

function readError({ error }: Raw): MessagePart | string {
  if (!isObject(error) || typeof error.message !== 'string') return 'an error part needs an `error` with a `message`'
  const { name, message, code } = error
  return { type: 'error', error: { name: firstString(name) ?? 'Error', message, ...(typeof code === 'string' && { code }) } }
}

function readData(raw: Raw, type: `data-${string}`): MessagePart {
  const data: JSONValue = asJSON(raw.data)
  return { type, ...(typeof raw.id === 'string' && { id: raw.id }), data, ...providerMetadataOf(raw) }
}

function isDataType(type: string): type is `data-${string}` {
  return type.startsWith('data-')
}

function isKind(kind: unknown): kind is `${string}.${string}` {
  return typeof kind === 'string' && kind.includes('.')
}
