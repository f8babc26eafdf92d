import { HeedError } from '../../base/errors.ts'

interface WithHeaders {
  header(name: string): string | null
}

/** Deeper nesting is an attempt to exhaust the stack, not a message. */
const maxDepth = 100

/** Rejects a body that is not declared as JSON, or that is compressed. */
export function checkContentType(request: WithHeaders): void {
  checkContentEncoding(request)
  const type = request.header('content-type') ?? ''
  if (!json.test(type)) throw new HeedError('unsupported_media_type', 'Send JSON, with the header Content-Type: application/json.')
}

/** Rejects a compressed body: limits apply to the bytes that are sent, so the server decompresses nothing. */
export function checkContentEncoding(request: WithHeaders): void {
  const encoding = request.header('content-encoding')?.trim() ?? ''
  if (encoding === '' || encoding.toLowerCase() === 'identity') return
  throw new HeedError('unsupported_media_type', 'Send the body uncompressed, without Content-Encoding: the server decompresses nothing.', {
    details: { field: 'Content-Encoding' },
  })
}

const json = /^application\/(?:[\w.+-]*\+)?json\b/i

export function parseBody(body: string): unknown {
  // Some clients begin a body with a byte order mark.
  const text = body.startsWith('\uFEFF') ? body.slice(1) : body
  if (text.trim() === '') return {}
  if (isDeep(text)) throw new HeedError('invalid_argument', `The body is nested deeper than ${maxDepth} levels.`)
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new HeedError('invalid_argument', 'The body is not JSON.', { cause })
  }
}

/** Rejects a body whose `Content-Length` is above the limit, before any of it is read. */
export function checkContentLength(length: string | null, maxBytes: number): void {
  if (length !== null && Number(length) > maxBytes) throw bodyTooLarge(maxBytes)
}

export function bodyTooLarge(maxBytes: number): HeedError {
  const message = `The body is larger than ${maxBytes} bytes. Send less, or upload files elsewhere and send their URL.`
  return new HeedError('too_large', message, { details: { maxBytes } })
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
