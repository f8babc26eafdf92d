export interface CorsOptions {
  /** Which origins may ask from a browser: their names, or a function that decides. */
  origin: string | readonly string[] | ((origin: string) => boolean)
  /** Let browsers send cookies. Defaults to false. */
  credentials?: boolean
  /** For how many seconds a browser may remember the answer. Defaults to 600. */
  maxAge?: number
}

/** Pages of other origins: none may ask unless they are named. */
export class Cors {
  readonly #options: CorsOptions | undefined

  constructor(options: CorsOptions | undefined) {
    this.#options = options
  }

  /** The answer to a browser that asks whether it may ask. */
  preflight(request: Request): Response | undefined {
    if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
    const response = new Response(null, { status: 204 })
    if (!this.#allows(request)) return response
    response.headers.set('access-control-allow-methods', 'GET, POST, PATCH, DELETE')
    response.headers.set('access-control-allow-headers', 'content-type, authorization, idempotency-key, last-event-id')
    response.headers.set('access-control-max-age', String(this.#options?.maxAge ?? 600))
    return response
  }

  mark(request: Request, response: Response): void {
    if (!this.#options) return
    response.headers.append('vary', 'origin')
    if (!this.#allows(request)) return
    response.headers.set('access-control-allow-origin', request.headers.get('origin') ?? '')
    if (this.#options.credentials) response.headers.set('access-control-allow-credentials', 'true')
  }

  #allows(request: Request): boolean {
    const asked = request.headers.get('origin')
    const origin = this.#options?.origin
    if (asked === null || origin === undefined) return false
    if (typeof origin === 'function') return origin(asked)
    if (origin === '*') return !this.#options?.credentials
    return typeof origin === 'string' ? origin === asked : origin.includes(asked)
  }
}
