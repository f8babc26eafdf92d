import { isObject } from '../base/json.ts'
import type { FilePart } from './message.ts'

type FileData = Pick<FilePart, 'data' | 'reference'>

/** The data of a file as text (a URL or base64), from any form that callers pass. A string is the reason why it can't be read. */
export function readFileData(data: unknown): FileData | string {
  if (typeof data === 'string') return readText(data)
  if (data instanceof URL) return { data: data.href }
  const bytes = asBytes(data)
  if (bytes) return { data: toBase64(bytes) }
  if (!isObject(data)) return 'a file needs `data`: a URL, base64 or bytes'
  switch (data.type) {
    case 'data':
      return readFileData(data.data)
    case 'url':
      return readFileData(data.url)
    case 'text':
      return typeof data.text === 'string' ? { data: toBase64(new TextEncoder().encode(data.text)) } : 'inline text needs `text`'
    case 'reference':
      return readReference(data.reference)
    default:
      return readReference(data)
  }
}

function readText(text: string): FileData | string {
  if (text === '') return 'the data of a file is empty'
  return isURLText(text) && !URL.canParse(text) ? `${JSON.stringify(text.slice(0, 80))} is not a valid URL` : { data: text }
}

function readReference(reference: unknown): FileData | string {
  const ids = isObject(reference) ? Object.entries(reference) : []
  const known = ids.filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return known.length > 0 && known.length === ids.length
    ? { data: '', reference: Object.fromEntries(known) }
    : 'a file needs `data`: a URL, base64, bytes, or the ids it has at its providers'
}

export function asBytes(data: unknown): Uint8Array | undefined {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return data instanceof ArrayBuffer ? new Uint8Array(data) : undefined
}

/** True for text that begins like a URL. Base64 never does: it has no colon. */
export function isURLText(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text)
}

/** The media type in a `data:` URL. */
export function mediaTypeOf(data: string): string | undefined {
  return /^data:([^;,]+)/i.exec(data)?.[1]
}

/** The parts of a `data:` URL, its data as base64; undefined when the URL is malformed. */
export function parseDataURL(url: string): { mediaType: string; base64: string } | undefined {
  const comma = url.indexOf(',')
  if (!/^data:/i.test(url) || comma < 0) return undefined
  const [mediaType = '', ...parameters] = url.slice('data:'.length, comma).split(';')
  const body = unescapeURL(url.slice(comma + 1))
  if (body === undefined) return undefined
  const encoded = parameters.at(-1)?.trim().toLowerCase() === 'base64'
  const base64 = encoded ? body : toBase64(new TextEncoder().encode(body))
  return isBase64(base64) ? { mediaType: mediaType.trim(), base64 } : undefined
}

function unescapeURL(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The media type of an image without one: from its `data:` URL, else from its first bytes, else `image/*`. */
export function imageMediaType(data: string): string {
  const url = parseDataURL(data)
  if (url?.mediaType) return url.mediaType
  const base64 = url?.base64 ?? data
  return imageSignatures.find(([signature]) => base64.startsWith(signature))?.[1] ?? 'image/*'
}

const imageSignatures: ReadonlyArray<readonly [base64: string, mediaType: string]> = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGODl', 'image/gif'],
  ['R0lGODd', 'image/gif'],
  ['UklGR', 'image/webp'],
]

/** True for base64 and base64url, padded or not. */
export function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/_-]*={0,2}$/.test(text)
}

const alphabet = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
const padding = '='.charCodeAt(0)

/** Not `btoa`, which needs the bytes as a string and takes ten times as long: a send encodes files before it returns. */
export function toBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4)
  let end = 0
  for (let start = 0; start < bytes.length; start += 3) {
    const group = (at(bytes, start) << 16) | (at(bytes, start + 1) << 8) | at(bytes, start + 2)
    text[end++] = at(alphabet, group >> 18)
    text[end++] = at(alphabet, (group >> 12) & 63)
    text[end++] = at(alphabet, (group >> 6) & 63)
    text[end++] = at(alphabet, group & 63)
  }
  const missing = (3 - (bytes.length % 3)) % 3
  if (missing > 0) text.fill(padding, end - missing)
  return new TextDecoder().decode(text)
}

function at(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0
}
