import { utf8Length } from './base64.ts'
import { fileDataLength, imageMediaType, normaliseFileData } from './file-data.ts'
import { copyProviderOptions, isPlainObject } from './json-copy.ts'
import { describe, refusal } from './refusal.ts'
import type { StoredContents, StoredFilePart, StoredPart } from './signal.ts'

/** What the contents of one signal may hold as they are stored: text in UTF-8, files in base64. */
export const MAX_SIGNAL_BYTES = 10 * 1024 * 1024

/** Contents as they are stored. Throws for anything that is not a text, a text part, a file part or an image part. */
export function normaliseContents(contents: unknown, maxBytes: number): StoredContents {
  if (typeof contents === 'string') {
    checkSize('contents', textBytes(contents, maxBytes), maxBytes)
    return contents
  }
  if (!Array.isArray(contents)) {
    throw refusal('contents', `must be a string or an array of text and file parts, not ${describe(contents)}.`)
  }
  let bytes = 0
  const parts: StoredPart[] = []
  for (const [index, part] of contents.entries()) {
    bytes += partBytes(part, maxBytes)
    checkSize('contents', bytes, maxBytes)
    parts.push(normalisePart(part, `contents[${index}]`))
  }
  return canonicalContents(parts)
}

/** One text alone is a string and nothing is an empty one: a row cannot tell them apart. */
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
  throw refusal(field, `holds more than ${maxBytes} bytes. Send less, or a URL in place of the bytes of a file.`, { maxBytes })
}

// Anything beyond the limit is beyond it, whatever its exact size.
function textBytes(text: string, maxBytes: number): number {
  return text.length > maxBytes ? text.length : utf8Length(text)
}

function partBytes(part: unknown, maxBytes: number): number {
  if (!isPlainObject(part)) return 0
  if (part.type === 'text') return typeof part.text === 'string' ? textBytes(part.text, maxBytes) : 0
  return fileDataLength(part.type === 'image' ? part.image : part.data)
}

function normalisePart(part: unknown, field: string): StoredPart {
  if (!isPlainObject(part)) throw refusal(field, `must be a part such as { type: 'text', text }, not ${describe(part)}.`)
  switch (part.type) {
    case 'text':
      if (typeof part.text !== 'string') throw refusal(`${field}.text`, `must be a string, not ${describe(part.text)}.`)
      return { type: 'text', text: part.text, ...optionsOf(part, field) }
    case 'file':
      return filePart(part, normaliseFileData(part.data, `${field}.data`), field)
    case 'image': {
      const data = normaliseFileData(part.image, `${field}.image`)
      return filePart({ ...part, mediaType: part.mediaType ?? imageMediaType(data) }, data, field)
    }
    default:
      throw refusal(`${field}.type`, `must be 'text', 'file' or 'image', not ${describe(part.type)}.`)
  }
}

function filePart(part: Record<string, unknown>, data: string, field: string): StoredFilePart {
  const { mediaType, filename } = part
  if (typeof mediaType !== 'string' || mediaType === '') {
    throw refusal(`${field}.mediaType`, `must be a media type such as 'application/pdf', not ${describe(mediaType)}.`)
  }
  if (filename !== undefined && filename !== null && typeof filename !== 'string') {
    throw refusal(`${field}.filename`, `must be a string, not ${describe(filename)}.`)
  }
  return { type: 'file', data, mediaType, ...(typeof filename === 'string' && { filename }), ...optionsOf(part, field) }
}

function optionsOf(part: Record<string, unknown>, field: string): Pick<StoredPart, 'providerOptions'> {
  if (part.providerOptions === undefined || part.providerOptions === null) return {}
  return { providerOptions: copyProviderOptions(part.providerOptions, `${field}.providerOptions`) }
}
