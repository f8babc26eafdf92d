import { HeedError } from '../../base/errors.ts'
import type { Asked } from './exchange.ts'

/** Values nested deeper than this are no message; they are an attempt to exhaust the stack. */
const maxDepth = 100

/** Refuses what doesn't say that it is JSON, or is packed. */
export function checkType(asked: Asked): void {
  checkEncoding(asked)
  const type = asked.header('content-type') ?? ''
  if (!json.test(type)) throw new HeedError('unsupported_media_type', 'Send JSON, with the header Content-Type: application/json.')
}

/** Bodies are bounded by what is sent, so nothing is unpacked here. */
export function checkEncoding(asked: Asked): void {
  const encoding = asked.header('content-encoding')?.trim() ?? ''
  if (encoding === '' || encoding.toLowerCase() === 'identity') return
  throw new HeedError('unsupported_media_type', 'Send the body as it is, without Content-Encoding: nothing is unpacked here.', { details: { field: 'Content-Encoding' } })
}

const json = /^application\/(?:[\w.+-]*\+)?json\b/i

/** What a body says, as long as it stays within its limits. */
export function parseBody(given: string): unknown {
  // Some writers begin with a byte order mark.
  const text = given.startsWith('\uFEFF') ? given.slice(1) : given
  if (text.trim() === '') return {}
  if (isDeep(text)) throw new HeedError('invalid_argument', `The body is nested deeper than ${maxDepth} levels.`)
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new HeedError('invalid_argument', 'The body is not JSON.', { cause })
  }
}

/** Refuses a body that says itself that it is too long. */
export function checkLength(length: string | null, maxBytes: number): void {
  if (length !== null && Number(length) > maxBytes) throw tooLarge(maxBytes)
}

export function tooLarge(maxBytes: number): HeedError {
  return new HeedError('too_large', `The body is larger than ${maxBytes} bytes. Send less, or upload files elsewhere and send their URL.`, { details: { maxBytes } })
}

function isDeep(text: string): boolean {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (inString) {
      if (code === 92) index++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 91 || code === 123) {
      if (++depth > maxDepth) return true
    } else if (code === 93 || code === 125) depth--
  }
  return false
}
