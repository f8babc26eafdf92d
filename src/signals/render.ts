import type { LanguageModelV4FilePart, LanguageModelV4Message, LanguageModelV4TextPart } from '@ai-sdk/provider'
import { partsOf } from './contents.ts'
import { escapeAttribute, escapeText } from './escape.ts'
import { isURLText, parseDataURL } from './file-data.ts'
import { needsGuard, RESERVED_TAGS } from './forgery.ts'
import type { ShownSignal, StoredAttributes, StoredFilePart, StoredPart } from './signal.ts'
import { isPlain } from './signal.ts'

/** A signal as the model receives it. */
export type UserModelMessage = Extract<LanguageModelV4Message, { role: 'user' }>

/**
 * The message that a model receives for a signal: the same bytes for the same signal, always.
 *
 * What a user says without attributes goes as it is, unless it reads like one of the `reserved` tags, however it got into its row. Everything else is an element, all of its text escaped inside it and no
 * blanks added. Where files stand between texts, each text is an element of its own and the first carries the attributes.
 */
export function renderSignal(signal: ShownSignal, reserved: readonly string[] = RESERVED_TAGS): UserModelMessage {
  const content = isPlain(signal) && !signal.guarded && !needsGuard(signal.contents, reserved) ? plainParts(signal) : elementParts(signal)
  return { role: 'user', content, ...(signal.providerOptions && { providerOptions: signal.providerOptions }) }
}

type ModelPart = LanguageModelV4TextPart | LanguageModelV4FilePart

// Providers refuse a text part with no text.
function plainParts(signal: ShownSignal): ModelPart[] {
  const parts = partsOf(signal.contents).filter(saysSomething)
  return parts.length > 0 ? parts.map(part => (part.type === 'text' ? { ...part } : modelFile(part))) : elementParts(signal)
}

function elementParts({ tagName, attributes, contents }: ShownSignal): ModelPart[] {
  const parts = partsOf(contents)
  if (parts.every(part => part.type === 'text' && !part.providerOptions)) {
    const text = parts.map(part => (part.type === 'text' ? part.text : '')).join('\n')
    return [{ type: 'text', text: element(tagName, attributes, text) }]
  }
  const said = parts.filter(saysSomething)
  let opening = attributes
  const content = said.map((part): ModelPart => {
    if (part.type === 'file') return modelFile(part)
    const text = element(tagName, opening, part.text)
    opening = undefined
    return { ...part, text }
  })
  if (!said.some(part => part.type === 'text')) content.unshift({ type: 'text', text: element(tagName, attributes, '') })
  return content
}

function saysSomething(part: StoredPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

function element(tag: string, attributes: StoredAttributes | undefined, text: string): string {
  const written = Object.entries(attributes ?? {}).map(([name, value]) => ` ${name}="${escapeAttribute(String(value))}"`)
  const start = `<${tag}${written.join('')}`
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
