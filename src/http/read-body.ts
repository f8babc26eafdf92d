import { HeedError } from '../errors.ts'

/** Values nested deeper than this are no message; they are an attempt to exhaust the stack. */
const maxDepth = 100

/** The JSON of a request, as long as it stays within its limits. */
export async function readBody(request: Request, maxBytes: number): Promise<unknown> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^application\/(?:[\w.+-]*\+)?json\b/i.test(type)) {
    throw new HeedError('unsupported_media_type', 'Send JSON, with the header Content-Type: application/json.')
  }
  const text = await readText(request, maxBytes)
  if (text.trim() === '') return {}
  if (isDeep(text)) throw new HeedError('invalid_argument', `The body is nested deeper than ${maxDepth} levels.`)
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new HeedError('invalid_argument', 'The body is not JSON.', { cause })
  }
}

export async function readText(request: Request, maxBytes: number): Promise<string> {
  const length = request.headers.get('content-length')
  if (length !== null && Number(length) > maxBytes) throw tooLarge(maxBytes)
  // The server holds a caller to the length that it named.
  if (length !== null) return request.text()
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of request.body ?? []) {
    size += part.byteLength
    if (size > maxBytes) throw tooLarge(maxBytes)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function tooLarge(maxBytes: number): HeedError {
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
