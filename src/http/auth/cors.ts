import { cursorHeader, heartbeatHeader } from '../../base/stream-headers.ts'
import type { Answer, Asked } from '../request/exchange.ts'

/** What a page may read of an answer. */
const exposed = `${cursorHeader}, ${heartbeatHeader}, retry-after`

/** What a page may send. */
const read = ['content-type', 'authorization', 'x-api-key', 'idempotency-key', 'last-event-id', 'traceparent', 'tracestate']

export interface CorsOptions {
  /** Which origins may ask from a browser: their names, or a function that decides. */
  origin: string | readonly string[] | ((origin: string) => boolean)
  /** Let browsers send cookies. Defaults to false. */
  credentials?: boolean
  /** Headers of your own that pages may send, besides those that the server reads. */
  allowHeaders?: readonly string[]
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
  preflight(asked: Asked): Answer | undefined {
    if (asked.method !== 'OPTIONS' || asked.header('access-control-request-method') === null) return undefined
    if (!this.#allows(asked)) return { status: 204, headers: {}, body: null }
    return {
      status: 204,
      headers: {
        'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
        'access-control-allow-headers': [...read, ...(this.#options?.allowHeaders ?? [])].join(', '),
        'access-control-max-age': String(this.#options?.maxAge ?? 600),
      },
      body: null,
    }
  }

  mark(asked: Asked, { headers }: Answer): void {
    if (!this.#options) return
    headers.vary = headers.vary === undefined ? 'origin' : `${headers.vary}, origin`
    if (!this.#allows(asked)) return
    headers['access-control-expose-headers'] = exposed
    headers['access-control-allow-origin'] = asked.header('origin') ?? ''
    if (this.#options.credentials) headers['access-control-allow-credentials'] = 'true'
  }

  #allows(asked: Asked): boolean {
    const from = asked.header('origin')
    const origin = this.#options?.origin
    if (from === null || origin === undefined) return false
    if (typeof origin === 'function') return origin(from)
    if (origin === '*') return !this.#options?.credentials
    return typeof origin === 'string' ? origin === from : origin.includes(from)
  }
}
