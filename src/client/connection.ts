import { HeedError, isHeedError, type HeedErrorCode } from '../base/errors.ts'
import { heartbeatHeader } from '../base/stream-headers.ts'

export interface ClientOptions {
  /** Where the server is, such as `http://localhost:4111`. */
  baseUrl: string
  /** Sent with every request: a key or a token. A function is asked each time. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>)
  /** Where the routes begin. Defaults to `/api`. */
  apiPrefix?: string
  /** How often a request is repeated that found no answer or a failing server. Defaults to 3. */
  retries?: number
  /** How long the answer to one attempt may take, or a stream to begin. Defaults to 60 s. What may be repeated then is. */
  timeoutMs?: number
  /** After how much silence a stream counts as lost. Defaults to well over twice the heartbeat that the server announces, and at least 60 s. */
  silenceMs?: number
  fetch?: typeof fetch
  /** Ends whatever this client asks, and its streams, once it is aborted. What was sent before stays sent. */
  signal?: AbortSignal
}

export interface Ask {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  query?: Record<string, unknown>
  body?: unknown
  /** The same send again is the same signal: every attempt carries the same key. */
  idempotent?: boolean
  /** Asked twice, it is answered the same, and leaves the same behind. */
  repeatable?: boolean
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** What has an id of its own is one by that, however often it is sent; anything else by a key. */
export function onceBy(id: string | undefined): Pick<Ask, 'idempotent' | 'repeatable'> {
  return id === undefined ? { idempotent: true } : { repeatable: true }
}

function methodOf({ method, body }: Ask): NonNullable<Ask['method']> {
  return method ?? (body === undefined ? 'GET' : 'POST')
}

/** A timer that is longer fires at once. */
const longestTimer = 2 ** 31 - 1

/** Requests with retries, and errors under the server's own names. */
export class Connection {
  readonly #options: ClientOptions
  readonly #base: string
  readonly #fetch: typeof fetch

  constructor(options: ClientOptions) {
    this.#options = options
    this.#base = options.baseUrl.replace(/\/+$/, '') + (options.apiPrefix ?? '/api')
    this.#fetch = options.fetch ?? ((...args) => fetch(...args))
  }

  /** The same for all who ask the same server with the same headers; what a function answers may change. */
  get place(): string {
    const { headers } = this.#options
    return JSON.stringify([this.#base, typeof headers === 'function' ? null : headers])
  }

  /** Aborted once nothing is to be asked any more. */
  get signal(): AbortSignal | undefined {
    return this.#options.signal
  }

  async json<T>(path: string, ask: Ask = {}): Promise<T> {
    const text = await this.text(path, ask)
    try {
      return JSON.parse(text) as T
    } catch (cause) {
      throw new HeedError('unreachable', `Something at ${this.#base} answered that is no Heed server: ${text.slice(0, 200)}`, { cause })
    }
  }

  async text(path: string, given: Ask = {}): Promise<string> {
    const ask = this.#abortable(given)
    const asking = this.#asking(path, ask)
    return this.#tried(ask, async (key) => {
      const own = await this.#headers()
      return this.#inTime(ask.signal, async (signal) => (await this.#once(asking, { ...own, ...key }, signal)).text())
    })
  }

  /** A stream of events, once the server has begun it. Not repeated: whoever reads it knows where to go on. */
  async events(path: string, given: Ask): Promise<Response> {
    const ask = this.#abortable(given)
    const asking = this.#asking(path, { ...ask, headers: { accept: 'text/event-stream', ...ask.headers } })
    const own = await this.#headers()
    return this.#inTime(ask.signal, (signal) => this.#once(asking, own, signal))
  }

  /** For how long a stream may be silent: the server says something more often, whatever the network does. */
  silenceOf(response: Response): number {
    const heartbeatMs = Number(response.headers.get(heartbeatHeader) ?? 0)
    return Math.min(this.#options.silenceMs ?? Math.max(60_000, (Number.isFinite(heartbeatMs) ? heartbeatMs : 0) * 2 + 10_000), longestTimer)
  }

  /** Each attempt has its own time: one that is never answered leaves the others theirs. */
  async #inTime<T>(asked: AbortSignal | undefined, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { baseUrl, timeoutMs = 60_000 } = this.#options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, longestTimer))
    try {
      return await attempt(asked ? AbortSignal.any([asked, late.signal]) : late.signal)
    } catch (cause) {
      if (asked?.aborted) throw asked.reason
      if (late.signal.aborted) throw new HeedError('unreachable', `The server at ${baseUrl} did not answer within ${timeoutMs} ms.`, { cause, retryable: true, details: { timeoutMs } })
      throw isHeedError(cause) ? cause : unreachable(baseUrl, cause)
    } finally {
      clearTimeout(timer)
    }
  }

  /** An answer that broke off is no answer: it is asked for again as long as that is safe. */
  async #tried<T>(ask: Ask, attemptOnce: (key: Record<string, string>) => Promise<T>): Promise<T> {
    const key: Record<string, string> = ask.idempotent ? { 'idempotency-key': freshKey() } : {}
    // A call that changes something is only repeated where the server knows it by its key, or where that changes nothing more.
    const retries = ask.idempotent || ask.repeatable || methodOf(ask) === 'GET' || methodOf(ask) === 'DELETE' ? (this.#options.retries ?? 3) : 0
    for (let attempt = 0; ; attempt++) {
      try {
        return await attemptOnce(key)
      } catch (error) {
        const wait = askedToWaitMs(error)
        if (attempt >= retries || ask.signal?.aborted || !mayPass(error) || wait > longestWaitMs) throw error
        await pause(Math.max(backoff(attempt, 100, 5_000), wait), ask.signal)
      }
    }
  }

  #abortable(ask: Ask): Ask {
    const signals = [ask.signal, this.#options.signal].filter((signal) => signal !== undefined)
    const [signal, ...more] = signals
    return signal ? { ...ask, signal: more.length === 0 ? signal : AbortSignal.any(signals) } : ask
  }

  /** What the caller's own function throws is the caller's, and no failure of the server. */
  async #headers(): Promise<Record<string, string>> {
    const { headers = {} } = this.#options
    return typeof headers === 'function' ? headers() : headers
  }

  /** What can't be asked of any server is refused before one is asked. */
  #asking(path: string, ask: Ask): Asking {
    const url = this.#base + path + queryOf(ask.query)
    const { location } = globalThis as { location?: { href: string } }
    if (!this.#options.fetch && !URL.canParse(url, location?.href)) throw new HeedError('invalid_argument', `baseUrl '${this.#options.baseUrl}' is no address. Write it as http://localhost:4111.`, { details: { option: 'baseUrl' } })
    return { url, method: methodOf(ask), headers: { ...(ask.body === undefined ? {} : { 'content-type': 'application/json' }), ...ask.headers }, ...(ask.body === undefined ? {} : { body: written(ask.body) }) }
  }

  async #once({ url, headers, ...init }: Asking, own: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const response = await this.#fetch(url, { ...init, headers: { ...own, ...headers }, signal })
    if (!response.ok) throw await failureOf(response)
    return response
  }
}

interface Asking {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
}

function written(body: unknown): string {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    throw new HeedError('invalid_argument', `What is sent can't be written as JSON: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Grows with every attempt, and is never the same for two clients. */
export function backoff(attempt: number, firstMs: number, mostMs: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 20)) * (0.5 + Math.random() / 2)
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Also where a page was not loaded securely, and `randomUUID` is missing. */
export function freshKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function unreachable(baseUrl: string, cause: unknown): HeedError {
  return new HeedError('unreachable', `The server at ${baseUrl} did not answer.`, { cause, retryable: true })
}

/** A server that wants to be left alone for longer is not asked again by itself. */
const longestWaitMs = 60_000

/** For how long a server asked to be left alone. */
export function askedToWaitMs(error: unknown): number {
  const ms = isHeedError(error) ? error.details?.retryAfterMs : undefined
  return typeof ms === 'number' && ms > 0 ? Math.min(ms, longestTimer) : 0
}

function mayPass(error: unknown): boolean {
  return error instanceof HeedError && error.retryable
}

/** The server's error under its own code. */
async function failureOf(response: Response): Promise<HeedError> {
  const text = await response.text()
  let body: { error?: unknown; code?: unknown; retryable?: unknown; details?: unknown } = {}
  try {
    body = JSON.parse(text) as typeof body
  } catch {
    // Something in between answered, not the server: its words are all there is.
  }
  const code = typeof body.code === 'string' ? (body.code as HeedErrorCode) : 'unreachable'
  const message = typeof body.error === 'string' ? body.error : `The server answered ${response.status}: ${text.slice(0, 200)}`
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new HeedError(code, message, {
    retryable: body.retryable === true || (response.status >= 500 && response.status !== 501) || response.status === 429,
    details: { ...(Number.isFinite(seconds) ? { retryAfterMs: seconds * 1_000 } : {}), ...(typeof body.details === 'object' ? body.details : {}), status: response.status },
  })
}

function queryOf(query: Record<string, unknown> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (value instanceof Date) search.set(name, value.toISOString())
    else search.set(name, typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}
