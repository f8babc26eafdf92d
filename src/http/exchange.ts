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

export function responseOf({ status, headers, body }: Answer): Response {
  return new Response(body, { status, headers })
}

/** A `Request` of the platform. */
export class PlatformAsked implements Asked {
  readonly request: Request
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
    const length = this.header('content-length')
    checkLength(length, maxBytes)
    // The server holds a caller to the length that it named.
    if (length !== null) return this.request.text()
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of this.request.body ?? []) {
      size += part.byteLength
      if (size > maxBytes) throw tooLarge(maxBytes)
      parts.push(part)
    }
    return Buffer.concat(parts).toString('utf8')
  }
}
