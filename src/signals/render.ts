import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from '@ai-sdk/provider'
import { isURLText, parseDataURL } from '../message/file-data.ts'
import { partsOf } from './contents.ts'
import type { ModelSignal, StoredAttributes, StoredFilePart, StoredPart, UserModelMessage } from './signal.ts'
import { escapeAttribute, escapeText, isPlain, needsGuard, RESERVED_TAGS } from './tags.ts'

/**
 * The message that a model receives for a signal. Equal signals have equal bytes.
 *
 * A user's text without attributes is unchanged, unless it imitates one of the `reserved` tags: rows may have been written without the
 * check of a send. Every other signal is an element with its text escaped and no whitespace added. Where files stand between texts, each
 * text is an element of its own, and the first has the attributes.
 */
export function renderSignal(signal: ModelSignal, reserved: readonly string[] = RESERVED_TAGS): UserModelMessage {
  const isUnchanged = isPlain(signal) && !signal.guarded && !needsGuard(signal.contents, reserved)
  const content = isUnchanged ? plainParts(signal) : elementParts(signal)
  return { role: 'user', content, ...(signal.providerOptions && { providerOptions: signal.providerOptions }) }
}

type ModelPart = LanguageModelV4TextPart | LanguageModelV4FilePart

// Providers reject an empty text part.
function plainParts(signal: ModelSignal): ModelPart[] {
  const parts = partsOf(signal.contents).filter(isNotEmpty)
  return parts.length > 0 ? parts.map(part => (part.type === 'text' ? { ...part } : modelFile(part))) : elementParts(signal)
}

function elementParts({ tagName, attributes, contents }: ModelSignal): ModelPart[] {
  const parts = partsOf(contents)
  if (parts.every(part => part.type === 'text' && !part.providerOptions)) {
    const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
    return [{ type: 'text', text: element(tagName, attributes, text) }]
  }
  const shown = parts.filter(isNotEmpty)
  let opening = attributes
  const content = shown.map((part): ModelPart => {
    if (part.type === 'file') return modelFile(part)
    const text = element(tagName, opening, part.text)
    opening = undefined
    return { ...part, text }
  })
  if (!shown.some(part => part.type === 'text')) content.unshift({ type: 'text', text: element(tagName, attributes, '') })
  return content
}

function isNotEmpty(part: StoredPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

function element(tag: string, attributes: StoredAttributes | undefined, text: string): string {
  const list = Object.entries(attributes ?? {}).map(([name, value]) => ` ${name}="${escapeAttribute(String(value))}"`)
  const start = `<${tag}${list.join('')}`
  return text === '' ? `${start} />` : `${start}>${escapeText(text)}</${tag}>`
}

function modelFile({ data, mediaType, filename, providerOptions }: StoredFilePart): LanguageModelV4FilePart {
  return {
    type: 'file',
    ...(filename !== undefined && { filename }),
    data: modelData(data),
    mediaType,
    ...(providerOptions && { providerOptions }),
  }
}

function modelData(data: string): LanguageModelV4FilePart['data'] {
  const inline = parseDataURL(data)
  if (inline) return { type: 'data', data: inline.base64 }
  return isURLText(data) && URL.canParse(data) ? { type: 'url', url: new URL(data) } : { type: 'data', data }
}
