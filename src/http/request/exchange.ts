import { HeedError, isHeedError } from '../../base/errors.ts'
import { bodyTooLarge, checkContentLength } from './read-body.ts'

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
  text(maxBytes: number): Promise<string>
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  /** The same as a `Request` of the platform, for hooks and sources. Its body must not be read. */
  readonly fetchRequest: Request
}

export interface HttpResponse {
  status: number
  headers: Record<string, string>
  body: string | ReadableStream<Uint8Array> | null
}

export function jsonResponse(status: number, value: unknown, headers: Record<string, string> = {}): HttpResponse {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) }
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

  async text(maxBytes: number): Promise<string> {
    checkContentLength(this.header('content-length'), maxBytes)
    if (this.fetchRequest.bodyUsed) {
      throw new HeedError('invalid_argument', 'The body of this request was already read. Pass a request whose body is unread.')
    }
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    let text = ''
    let size = 0
    try {
      for await (const part of this.fetchRequest.body ?? []) {
        size += part.byteLength
        if (size > maxBytes) throw bodyTooLarge(maxBytes)
        text += decoder.decode(part, { stream: true })
      }
    } catch (cause) {
      if (isHeedError(cause)) throw cause
      throw new HeedError('invalid_argument', 'The body ended before it was complete. Send it again.', { cause, retryable: true })
    }
    return text + decoder.decode()
  }
}
