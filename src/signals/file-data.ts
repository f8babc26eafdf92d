import { isBase64, toBase64 } from './base64.ts'
import { describe, refusal } from './refusal.ts'

/** The data of a file as text: a URL or base64. Throws for what no provider could read, so that it fails at the send. */
export function normaliseFileData(data: unknown, field: string): string {
  const source = untag(data)
  if (typeof source === 'string') return checkText(source, field)
  const bytes = asBytes(source)
  if (bytes) return toBase64(bytes)
  throw refusal(field, `must be base64, bytes or a URL, not ${describe(source)}.`)
}

/** How long the text will be that `normaliseFileData` gives, without making it. */
export function fileDataLength(data: unknown): number {
  const source = untag(data)
  if (typeof source === 'string') return source.length
  const bytes = asBytes(source)
  return bytes ? Math.ceil(bytes.length / 3) * 4 : 0
}

/** True for text that begins like a URL. No base64 does: it has no colon. */
export function isURLText(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text)
}

/** The parts of a `data:` URL, its data as base64; undefined when it is malformed. */
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

/** The type of an image that came without one: from its URL, or from its first bytes, or any. */
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

function untag(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return data
  if ('type' in data && data.type === 'data' && 'data' in data) return data.data
  if ('type' in data && data.type === 'url' && 'url' in data) return untag(data.url)
  return isURL(data) ? data.href : data
}

// By name and not by class: a test's DOM brings classes of its own.
function isURL(data: object): data is URL {
  return Object.prototype.toString.call(data) === '[object URL]'
}

function asBytes(data: unknown): Uint8Array | undefined {
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return data instanceof ArrayBuffer ? new Uint8Array(data) : undefined
}

function checkText(text: string, field: string): string {
  if (!isURLText(text)) {
    if (!isBase64(text)) throw refusal(field, 'is neither a URL nor base64. Pass the bytes, or encode them.')
    return text
  }
  if (!URL.canParse(text)) throw refusal(field, 'is not a valid URL.')
  if (/^data:/i.test(text) && !parseDataURL(text)) {
    throw refusal(field, 'is a malformed data: URL. Write data:<media type>;base64,<data>.')
  }
  return text
}

function unescapeURL(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
