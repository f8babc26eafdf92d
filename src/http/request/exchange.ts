import { HeedError, isHeedError } from '../../base/errors.ts'
import { checkLength, tooLarge } from './read-body.ts'

/** A request as the routes see it. What is dear to make is made when somebody asks for it. */
export interface Asked {
  readonly method: string
  /** Without the query, as it was sent. */
  readonly path: string
  /** Without its question mark. */
  readonly search: string
  /** The name under which the caller reached us, in lower case and without a port; empty when it said none. */
  readonly hostname: string
  /** The address at the other end, where it is known. */
  readonly remote: string | undefined
  /** By its name in lower case. */
  header(name: string): string | null
  text(maxBytes: number): Promise<string>
  /** Aborts when the caller goes. */
  readonly signal: AbortSignal
  /** For those who know requests as the platform has them. Its body is not for reading. */
  readonly request: Request
}

/** What is answered. */
export interface Answer {
  status: number
  headers: Record<string, string>
  body: string | ReadableStream<Uint8Array> | null
}

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) }
}

export function answerOf(response: Response): Answer {
  return { status: response.status, headers: Object.fromEntries(response.headers), body: response.body }
}

/** To a `HEAD`, the head alone. */
export function responseOf({ status, headers, body }: Answer, method: string): Response {
  if (method !== 'HEAD') return new Response(body, { status, headers })
  if (body instanceof ReadableStream) body.cancel().catch(() => {})
  return new Response(null, { status, headers })
}

/** A `Request` of the platform. */
export class PlatformAsked implements Asked {
  readonly request: Request
  readonly remote = undefined
  readonly #url: URL

  constructor(request: Request) {
    this.request = request
    this.#url = new URL(request.url)
  }

  get method(): string {
    return this.request.method
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
    return this.request.signal
  }

  header(name: string): string | null {
    return this.request.headers.get(name)
  }

  async text(maxBytes: number): Promise<string> {
    checkLength(this.header('content-length'), maxBytes)
    if (this.request.bodyUsed) throw new HeedError('invalid_argument', 'The body of this request was read before it came here. Pass a request that nobody has read.')
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
    let text = ''
    let size = 0
    try {
      for await (const part of this.request.body ?? []) {
        size += part.byteLength
        if (size > maxBytes) throw tooLarge(maxBytes)
        text += decoder.decode(part, { stream: true })
      }
    } catch (cause) {
      if (isHeedError(cause)) throw cause
      throw new HeedError('invalid_argument', 'The body broke off before it was complete. Send it again.', { cause, retryable: true })
    }
    return text + decoder.decode()
  }
}
