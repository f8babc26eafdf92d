import { describeValue } from '../base/arguments.ts'
import { isPlainObject } from '../base/json.ts'
import { asBytes, imageMediaType, isBase64, isURLText, parseDataURL, toBase64 } from '../message/file-data.ts'
import { copyProviderOptions, invalidSignal } from './input-fields.ts'
import type { StoredContents, StoredFilePart, StoredPart } from './signal.ts'

/** The limit of the contents of one signal as they are stored: text in UTF-8, files in base64. */
export const MAX_SIGNAL_BYTES = 10 * 1024 * 1024

/** Contents as they are stored. Rejects everything but a text and text, file and image parts. */
export function normalizeContents(contents: unknown, maxBytes: number): StoredContents {
  if (typeof contents === 'string') {
    checkSize('contents', textBytes(contents, maxBytes), maxBytes)
    return contents
  }
  if (!Array.isArray(contents)) {
    throw invalidSignal('contents', `must be a string or an array of text and file parts, not ${describeValue(contents)}.`)
  }
  let bytes = 0
  const parts: StoredPart[] = []
  for (const [index, part] of contents.entries()) {
    bytes += partBytes(part, maxBytes)
    checkSize('contents', bytes, maxBytes)
    parts.push(normalizePart(part, `contents[${index}]`))
  }
  return canonicalContents(parts)
}

/** A single text part becomes a string, no part an empty string: a row doesn't distinguish these forms. */
export function canonicalContents(parts: StoredPart[]): StoredContents {
  const [first] = parts
  if (!first) return ''
  return parts.length === 1 && first.type === 'text' && !first.providerOptions ? first.text : parts
}

export function partsOf(contents: StoredContents): StoredPart[] {
  return typeof contents === 'string' ? [{ type: 'text', text: contents }] : contents
}

export function checkSize(field: string, bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return
  throw invalidSignal(field, `holds more than ${maxBytes} bytes. Send less, or the URL of a file in place of its bytes.`, { maxBytes })
}

/** The length of a text in UTF-8. A lone surrogate counts as the replacement character. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(index + 1))) {
      bytes += 2
      index++
    } else bytes += 2
  }
  return bytes
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}

// Above the limit the exact size doesn't matter.
function textBytes(text: string, maxBytes: number): number {
  return text.length > maxBytes ? text.length : utf8Length(text)
}

function partBytes(part: unknown, maxBytes: number): number {
  if (!isPlainObject(part)) return 0
  if (part.type === 'text') return typeof part.text === 'string' ? textBytes(part.text, maxBytes) : 0
  return fileDataLength(part.type === 'image' ? part.image : part.data)
}

function normalizePart(part: unknown, field: string): StoredPart {
  if (!isPlainObject(part)) throw invalidSignal(field, `must be a part such as { type: 'text', text }, not ${describeValue(part)}.`)
  if (isPartType(part.type)) checkFields(part, partFields[part.type], field)
  switch (part.type) {
    case 'text':
      if (typeof part.text !== 'string') throw invalidSignal(`${field}.text`, `must be a string, not ${describeValue(part.text)}.`)
      return { type: 'text', text: part.text, ...providerOptionsOf(part, field) }
    case 'file':
      return filePart(part, normalizeFileData(part.data, `${field}.data`), field)
    case 'image': {
      const data = normalizeFileData(part.image, `${field}.image`)
      return filePart({ ...part, mediaType: part.mediaType ?? imageMediaType(data) }, data, field)
    }
    default:
      throw invalidSignal(`${field}.type`, `must be 'text', 'file' or 'image', not ${describeValue(part.type)}.`)
  }
}

const partFields = {
  text: ['type', 'text', 'providerOptions'],
  file: ['type', 'data', 'mediaType', 'filename', 'providerOptions'],
  image: ['type', 'image', 'mediaType', 'filename', 'providerOptions'],
} as const

function isPartType(type: unknown): type is keyof typeof partFields {
  return typeof type === 'string' && Object.hasOwn(partFields, type)
}

function checkFields(part: Record<string, unknown>, known: readonly string[], field: string): void {
  const unknown = Object.keys(part).find((name) => !known.includes(name) && part[name] !== undefined && part[name] !== null)
  if (unknown !== undefined) throw invalidSignal(`${field}.${unknown}`, `is not known. Known: ${known.join(', ')}.`)
}

function filePart(part: Record<string, unknown>, data: string, field: string): StoredFilePart {
  const { mediaType, filename } = part
  if (typeof mediaType !== 'string' || mediaType === '') {
    throw invalidSignal(`${field}.mediaType`, `must be a media type such as 'application/pdf', not ${describeValue(mediaType)}.`)
  }
  if (filename !== undefined && filename !== null && typeof filename !== 'string') {
    throw invalidSignal(`${field}.filename`, `must be a string, not ${describeValue(filename)}.`)
  }
  return { type: 'file', data, mediaType, ...(typeof filename === 'string' && { filename }), ...providerOptionsOf(part, field) }
}

function providerOptionsOf(part: Record<string, unknown>, field: string): Pick<StoredPart, 'providerOptions'> {
  if (part.providerOptions === undefined || part.providerOptions === null) return {}
  return { providerOptions: copyProviderOptions(part.providerOptions, `${field}.providerOptions`) }
}

/** The data of a file as text: a URL or base64. Rejects data that no provider can read, so that the send fails and not the run. */
function normalizeFileData(data: unknown, field: string): string {
  const source = untag(data)
  if (typeof source === 'string') return checkFileText(source, field)
  const bytes = asBytes(source)
  if (bytes) return toBase64(bytes)
  throw invalidSignal(field, `must be base64, bytes or a URL, not ${describeValue(source)}.`)
}

/** The length of the result of `normalizeFileData`, without encoding the data. */
function fileDataLength(data: unknown): number {
  const source = untag(data)
  if (typeof source === 'string') return source.length
  const bytes = asBytes(source)
  return bytes ? Math.ceil(bytes.length / 3) * 4 : 0
}

function untag(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return data
  if ('type' in data && data.type === 'data' && 'data' in data) return data.data
  if ('type' in data && data.type === 'url' && 'url' in data) return untag(data.url)
  return isURL(data) ? data.href : data
}

// By tag and not by class: the DOM of a test environment has a `URL` class of its own.
function isURL(data: object): data is URL {
  return Object.prototype.toString.call(data) === '[object URL]'
}

function checkFileText(text: string, field: string): string {
  if (!isURLText(text)) {
    if (!isBase64(text)) throw invalidSignal(field, 'is neither a URL nor base64. Pass the bytes, or encode them.')
    return text
  }
  if (!URL.canParse(text)) throw invalidSignal(field, 'is not a valid URL.')
  if (/^data:/i.test(text) && !parseDataURL(text)) {
    throw invalidSignal(field, 'is a malformed data: URL. Write data:<media type>;base64,<data>.')
  }
  return text
}
