import { HeedError, isHeedError } from '../../base/errors.ts'
import { isDeep, jsonText, maxDepth } from '../../base/json.ts'
import type { ByteStream } from '../../socket/server-socket.ts'

/** A request as the routes see it, from Node or from the platform. Costly properties are computed when they are first read. */
export interface HttpRequest {
  readonly method: string
  /** Without the query, as it was sent. */
  readonly path: string
  /** The query, without its question mark. */
  readonly search: string
  /** The host name in the request, in lower case and without a port; empty if it names none. */
  readonly hostname: string
  /** The client's address, if it is known. */
  readonly remote: string | undefined
  /** A header by its name in lower case. */
  header(name: string): string | null
  /** The names of all headers, in lower case. */
  headerNames(): Iterable<string>
  text(maxBytes: number): Promise<string>
  /** The body as it comes, up to so many bytes. */
  chunks(maxBytes: number): AsyncIterable<Uint8Array>
  /** The connection can become a WebSocket. */
  readonly upgradable?: true
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  /** The same as a `Request` of the platform, for hooks and sources. Its body must not be read. */
  readonly fetchRequest: Request
}

export interface HttpResponse {
  status: number
  headers: Record<string, string>
  body: string | ReadableStream<Uint8Array> | null
  /** The connection becomes a WebSocket. */
  upgrade?: Upgrade
}

/** What a route answers with that is a WebSocket. */
export class Upgrade {
  readonly protocol: string | undefined
  readonly open: (stream: ByteStream, head: Uint8Array) => void

  constructor(protocol: string | undefined, open: (stream: ByteStream, head: Uint8Array) => void) {
    this.protocol = protocol
    this.open = open
  }
}

export function jsonResponse(status: number, value: unknown, headers: Record<string, string> = {}): HttpResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: jsonText(value) }
}

export function fromFetchResponse(response: Response): HttpResponse {
  return { status: response.status, headers: Object.fromEntries(response.headers), body: response.body }
}

/** Drops the body if the method is `HEAD`. */
export function toFetchResponse({ status, headers, body }: HttpResponse, method: string): Response {
  if (method !== 'HEAD') return new Response(body, { status, headers })
  if (body instanceof ReadableStream) body.cancel().catch(() => {})
  return new Response(null, { status, headers })
}

/** An `HttpRequest` over a `Request` of the platform. */
export class FetchHttpRequest implements HttpRequest {
  readonly fetchRequest: Request
  readonly remote = undefined
  readonly #url: URL

  constructor(request: Request) {
    this.fetchRequest = request
    this.#url = new URL(request.url)
  }

  get method(): string {
    return this.fetchRequest.method
  }

  get path(): string {
    return this.#url.pathname
  }

  get search(): string {
    return this.#url.search.slice(1)
  }

  get hostname(): string {
    return this.#url.hostname
  }

  get signal(): AbortSignal {
    return this.fetchRequest.signal
  }

  header(name: string): string | null {
    return this.fetchRequest.headers.get(name)
  }

  headerNames(): Iterable<string> {
    return this.fetchRequest.headers.keys()
  }

  async text(maxBytes: number): Promise<string> {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    let text = ''
    for await (const part of this.chunks(maxBytes)) text += decoder.decode(part, { stream: true })
    return text + decoder.decode()
  }

  async *chunks(maxBytes: number): AsyncGenerator<Uint8Array> {
    checkContentLength(this.header('content-length'), maxBytes)
    if (this.fetchRequest.bodyUsed) {
      throw new HeedError('invalid_argument', 'The body of this request was already read. Pass a request whose body is unread.')
    }
    let size = 0
    try {
      for await (const part of this.fetchRequest.body ?? []) {
        size += part.byteLength
        if (size > maxBytes) throw bodyTooLarge(maxBytes)
        yield part
      }
    } catch (cause) {
      if (isHeedError(cause)) throw cause
      throw new HeedError('invalid_argument', 'The body ended before it was complete. Send it again.', { cause, retryable: true })
    }
  }
}

interface WithHeaders {
  header(name: string): string | null
}

/** Whether a request is without a body, and does not say of what type it would be. */
export function hasNoBody(request: WithHeaders): boolean {
  return request.header('content-type') === null && request.header('transfer-encoding') === null &&
    Number(request.header('content-length') ?? 0) === 0
}

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

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const hostForm = new RegExp(`^(\\[[0-9a-f:.]{2,45}\\]|${label}(?:\\.${label})*\\.?)(?::\\d{1,5})?$`, 'i')
const loopbackForm = new RegExp(`^(?:(?:${label}\\.)*localhost|\\[?::1\\]?|127(?:\\.(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)){3})$`)

/**
 * The host that a `Host` header names: a name and an optional port, and nothing that could be parsed as another part of a URL. Any
 * other header gives an empty name and a reserved origin.
 */
export function parseHost(header: string | null): Host {
  if (header !== lastHeader) {
    lastHost = parse(header)
    lastHeader = header
  }
  return lastHost
}

interface Host {
  hostname: string
  origin: string
}

const noHost: Host = { hostname: '', origin: 'http://unnamed.invalid' }

// Most requests have the same header as the one before.
let lastHeader: string | null = null
let lastHost = noHost

function parse(header: string | null): Host {
  const hostname = hostForm.exec(header ?? '')?.[1]?.toLowerCase()
  const origin = `http://${header}`
  return hostname !== undefined && URL.canParse(origin) ? { hostname, origin } : noHost
}

/** Headers that only a proxy adds. */
const proxyHeader = /^(?:x-forwarded(?:-.+)?|forwarded|via|x-real-ip)$/

/** The header by which a request shows that it came through a proxy: its sender may be anywhere, whatever host it names. */
export function findProxyHeader(request: Pick<HttpRequest, 'headerNames'>): string | undefined {
  for (const name of request.headerNames()) if (proxyHeader.test(name)) return name
  return undefined
}

/** True for names and addresses that never leave this machine. */
export function isLoopback(hostname: string): boolean {
  return loopbackForm.test(hostname)
}
