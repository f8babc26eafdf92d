import { checkNames, checkWhole, refused } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import { cursorHeader, heartbeatHeader } from '../../base/stream-headers.ts'
import type { HttpRequest, HttpResponse } from '../request/exchange.ts'

/** Response headers that a page may read. */
const exposedHeaders = `${cursorHeader}, ${heartbeatHeader}, retry-after`

/** Request headers that a page may send. */
const allowedHeaders = ['content-type', 'authorization', 'x-api-key', 'idempotency-key', 'last-event-id', 'traceparent', 'tracestate']

/** Which pages of other origins may call the server. */
export interface CorsOptions {
  /** The origins whose pages may call the server: their names, or a function that decides. */
  origin: string | readonly string[] | ((origin: string) => boolean)
  /** Let browsers send cookies. Defaults to false. */
  credentials?: boolean
  /** Headers of your own that pages may send, besides those that the server reads. */
  allowHeaders?: readonly string[]
  /** How many seconds a browser may cache the preflight response. Defaults to 600. */
  maxAge?: number
}

/** Cross-origin requests: pages of origins that are not configured may make none. */
export class Cors {
  readonly #options: CorsOptions | undefined

  constructor(options: CorsOptions | undefined) {
    if (options !== undefined) checkCors(options)
    this.#options = options
  }

  /** The response to a preflight request; undefined for any other request. */
  preflight(request: HttpRequest): HttpResponse | undefined {
    if (request.method !== 'OPTIONS' || request.header('access-control-request-method') === null) return undefined
    if (!this.#allows(request)) return { status: 204, headers: {}, body: null }
    return {
      status: 204,
      headers: {
        'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
        'access-control-allow-headers': [...allowedHeaders, ...(this.#options?.allowHeaders ?? [])].join(', '),
        'access-control-max-age': String(this.#options?.maxAge ?? 600),
      },
      body: null,
    }
  }

  /**
   * Rejects a request of a page of another origin that browsers send without asking first: a form, and the handshake of a WebSocket. A
   * program sends no origin.
   */
  checkOrigin(request: HttpRequest): void {
    const origin = request.header('origin')
    if (origin === null || isOwn(origin, request.header('host')) || this.#allows(request)) return
    const message = `Pages of ${origin.slice(0, 200)} may not do this. Allow them: cors: { origin: ['${origin.slice(0, 200)}'] }.`
    throw new HeedError('forbidden', message, { details: { field: 'Origin' } })
  }

  addHeaders(request: HttpRequest, { headers }: HttpResponse): void {
    if (!this.#options) return
    headers.vary = headers.vary === undefined ? 'origin' : `${headers.vary}, origin`
    if (!this.#allows(request)) return
    headers['access-control-expose-headers'] = exposedHeaders
    headers['access-control-allow-origin'] = request.header('origin') ?? ''
    if (this.#options.credentials) headers['access-control-allow-credentials'] = 'true'
  }

  #allows(request: HttpRequest): boolean {
    const from = request.header('origin')
    const origin = this.#options?.origin
    if (from === null || origin === undefined) return false
    if (typeof origin === 'function') return origin(from)
    if (origin === '*') return !this.#options?.credentials
    return typeof origin === 'string' ? origin === from : origin.includes(from)
  }
}

function isOwn(origin: string, host: string | null): boolean {
  return host !== null && URL.canParse(origin) && new URL(origin).host === host.toLowerCase()
}

function checkCors(options: CorsOptions): void {
  checkNames('cors', options, ['origin', 'credentials', 'allowHeaders', 'maxAge'])
  const { origin, credentials, allowHeaders, maxAge } = options as { [Name in keyof CorsOptions]: unknown }
  if (typeof origin !== 'string' && typeof origin !== 'function' && !isTexts(origin)) {
    throw refused('cors.origin', 'an origin, a list of origins, or a function')
  }
  const named = typeof origin === 'string' ? [origin] : Array.isArray(origin) ? (origin as string[]) : []
  const wrong = named.find((one) => !isOrigin(one, typeof origin === 'string'))
  if (wrong !== undefined)
    throw refused('cors.origin', `an origin as browsers send it, such as 'https://app.example.com', and not '${wrong}'`)
  if (credentials !== undefined && typeof credentials !== 'boolean') throw refused('cors.credentials', 'true or false')
  if (allowHeaders !== undefined && !isTexts(allowHeaders)) throw refused('cors.allowHeaders', 'a list of header names')
  if (maxAge !== undefined) checkWhole('cors.maxAge', maxAge)
  // Browsers refuse credentials for any origin.
  if (origin === '*' && credentials === true) {
    throw refused('cors.origin', "a list of origins if cors.credentials is true: '*' is not allowed then")
  }
}

/** Scheme, host and port, without a path: an entry that differs from what browsers send would match no page. */
function isOrigin(value: string, alone: boolean): boolean {
  if ((alone && value === '*') || value === 'null') return true
  const scheme = /^[a-z][a-z\d+.-]*:\/\/[^/]+$/.test(value) && URL.canParse(value)
  return scheme && (new URL(value).origin === 'null' || new URL(value).origin === value)
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
