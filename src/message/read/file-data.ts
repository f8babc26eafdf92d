import type { FilePart } from '../message.ts'
import { isRaw } from './raw.ts'

type FileData = Pick<FilePart, 'data' | 'reference'>

/** The data of a file in any form that callers have it, as text: a URL or base64. A string says why it can't be read. */
export function readFileData(data: unknown): FileData | string {
  if (typeof data === 'string') return readText(data)
  if (data instanceof URL) return { data: data.href }
  if (ArrayBuffer.isView(data)) return { data: toBase64(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)) }
  if (data instanceof ArrayBuffer) return { data: toBase64(new Uint8Array(data)) }
  if (!isRaw(data)) return 'a file needs `data`: a URL, base64 or bytes'
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

/** True for text that begins like a URL. No base64 does: it has no colon. */
export function isURLText(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text)
}

/** The media type that a `data:` URL names. */
export function mediaTypeOf(data: string): string | undefined {
  return /^data:([^;,]+)/i.exec(data)?.[1]
}

function readText(text: string): FileData | string {
  if (text === '') return 'the data of a file is empty'
  return isURLText(text) && !URL.canParse(text) ? `${JSON.stringify(text.slice(0, 80))} is not a valid URL` : { data: text }
}

function readReference(reference: unknown): FileData | string {
  const ids = isRaw(reference) ? Object.entries(reference) : []
  const known = ids.filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return known.length > 0 && known.length === ids.length
    ? { data: '', reference: Object.fromEntries(known) }
    : 'a file needs `data`: a URL, base64, bytes, or the ids it has at its providers'
}

// A multiple of three, so that only the last piece is padded.
const pieceBytes = 3 * 8192

export function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    text += btoa(String.fromCharCode(...bytes.subarray(start, start + pieceBytes)))
  }
  return text
}
