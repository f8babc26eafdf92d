import { HeedError, isHeedError, type HeedErrorCode } from '../base/errors.ts'
import { heartbeatHeader } from '../base/stream-headers.ts'
import { encodeBody } from './body.ts'

/** The options of `HeedClient`. */
export interface ClientOptions {
  /** The URL of the server, such as `http://localhost:4111`. */
  baseUrl: string
  /** Sent with every request: a key or a token. A function is called for each attempt. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>)
  /** The path below which the routes are mounted. Defaults to `/api`. */
  apiPrefix?: string
  /** How often a request is retried after no response or a server error. Defaults to 3. */
  retries?: number
  /** How long one attempt may take until its response, or until its stream begins. Defaults to 60 s. Then it is retried if that is safe. */
  timeoutMs?: number
  /** How long a stream may be silent before it counts as lost. Defaults to more than twice the server's heartbeat, and at least 60 s. */
  silenceMs?: number
  fetch?: typeof fetch
  /** Aborts the requests and streams of this client. Signals that were sent stay sent. */
  signal?: AbortSignal
}

interface RequestOptions {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  query?: Record<string, unknown>
  body?: unknown
  /** Every attempt has the same idempotency key, so that repeated sends are one signal. */
  idempotent?: boolean
  /** A repetition has the same effect and the same response. */
  repeatable?: boolean
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** How a send is made safe to retry: by the id of its input, or by an idempotency key. */
export function retryPolicy(id: string | undefined): Pick<RequestOptions, 'idempotent' | 'repeatable'> {
  return id === undefined ? { idempotent: true } : { repeatable: true }
}

function methodOf({ method, body }: RequestOptions): NonNullable<RequestOptions['method']> {
  return method ?? (body === undefined ? 'GET' : 'POST')
}

/** `setTimeout` fires at once for longer times. */
const maxTimerMs = 2 ** 31 - 1

/** Makes requests with retries; errors have the server's codes. */
export class Connection {
  readonly #options: ClientOptions
  readonly #base: string
  readonly #fetch: typeof fetch

  constructor(options: ClientOptions) {
    this.#options = options
    this.#base = options.baseUrl.replace(/\/+$/, '') + (options.apiPrefix ?? '/api')
    this.#fetch = options.fetch ?? ((...args) => fetch(...args))
  }

  /** Equal for connections to the same server with the same headers. The results of a function are not compared. */
  get identity(): string {
    const { headers } = this.#options
    return JSON.stringify([this.#base, typeof headers === 'function' ? null : headers])
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal
  }

  /** The address of a path of the server. */
  url(path: string, query?: Record<string, unknown>): string {
    return this.#base + path + encodeQuery(query)
  }

  async json<T>(path: string, options: RequestOptions = {}): Promise<T> {
    const text = await this.text(path, options)
    try {
      return JSON.parse(text) as T
    } catch (cause) {
      const message = `The response from ${this.#base} is not JSON. Check baseUrl: ${text.slice(0, 200)}`
      throw new HeedError('unreachable', message, { cause })
    }
  }

  async text(path: string, requestOptions: RequestOptions = {}): Promise<string> {
    const options = this.#abortable(requestOptions)
    const request = this.#prepare(path, options)
    return this.#retried(options, async (key) => {
      const headers = await this.#headers()
      return this.#inTime(options.signal, async (signal) => (await this.#send(request, { ...headers, ...key }, signal)).text())
    })
  }

  /** A response that is read as it comes. Not retried. `content`: a body that is no JSON. */
  async respond(path: string, requestOptions: RequestOptions & { content?: BodyInit; contentType?: string }): Promise<Response> {
    const { content, contentType, ...options } = this.#abortable(requestOptions) as typeof requestOptions
    const prepared = this.#prepare(path, options)
    const request = content === undefined ? prepared : {
      ...prepared, method: 'POST', body: content, duplex: 'half' as const,
      headers: { ...prepared.headers, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
    }
    const headers = await this.#headers()
    return this.#inTime(options.signal, (signal) => this.#send(request, headers, signal))
  }

  /** Resolves when the server has begun the stream. Not retried: its reader knows the cursor to continue from. */
  async events(path: string, requestOptions: RequestOptions): Promise<Response> {
    const options = this.#abortable(requestOptions)
    const request = this.#prepare(path, { ...options, headers: { accept: 'text/event-stream', ...options.headers } })
    const headers = await this.#headers()
    return this.#inTime(options.signal, (signal) => this.#send(request, headers, signal))
  }

  /** How long a stream may be silent. The server sends heartbeats more often. */
  maxSilenceMs(response: Response): number {
    const heartbeatMs = Number(response.headers.get(heartbeatHeader) ?? 0)
    const announced = Math.max(60_000, (Number.isFinite(heartbeatMs) ? heartbeatMs : 0) * 2 + 10_000)
    return Math.min(this.#options.silenceMs ?? announced, maxTimerMs)
  }

  /** Limits the time of one attempt. */
  async #inTime<T>(callerSignal: AbortSignal | undefined, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { baseUrl, timeoutMs = 60_000 } = this.#options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, maxTimerMs))
    try {
      return await attempt(callerSignal ? AbortSignal.any([callerSignal, late.signal]) : late.signal)
    } catch (cause) {
      if (callerSignal?.aborted) throw callerSignal.reason
      if (late.signal.aborted) {
        const message = `The server at ${baseUrl} did not respond within ${timeoutMs} ms.`
        throw new HeedError('unreachable', message, { cause, retryable: true, details: { timeoutMs } })
      }
      throw isHeedError(cause) ? cause : unreachable(baseUrl, cause)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Retries attempts without a complete response, as long as a repetition is safe. */
  async #retried<T>(options: RequestOptions, attemptOnce: (key: Record<string, string>) => Promise<T>): Promise<T> {
    const { idempotent, repeatable, signal } = options
    const method = methodOf(options)
    const key: Record<string, string> = idempotent ? { 'idempotency-key': randomKey() } : {}
    // A call with an effect is only repeated if the server recognizes it by its key, or if the repetition has no further effect.
    const retries = idempotent || repeatable || method === 'GET' || method === 'DELETE' ? (this.#options.retries ?? 3) : 0
    for (let attempt = 0; ; attempt++) {
      try {
        return await attemptOnce(key)
      } catch (error) {
        const wait = retryAfterMs(error)
        if (attempt >= retries || signal?.aborted || !isRetryable(error) || wait > maxRetryAfterMs) throw error
        await pause(Math.max(backoff(attempt, 100, 5_000), wait), signal)
      }
    }
  }

  #abortable(options: RequestOptions): RequestOptions {
    const signals = [options.signal, this.#options.signal].filter((signal) => signal !== undefined)
    const [signal, ...more] = signals
    return signal ? { ...options, signal: more.length === 0 ? signal : AbortSignal.any(signals) } : options
  }

  /** An error of the configured function is passed on as it is: it is not a failure of the server. */
  async #headers(): Promise<Record<string, string>> {
    const { headers = {} } = this.#options
    return typeof headers === 'function' ? headers() : headers
  }

  /** Rejects what can't be sent to any server, before a request is made. */
  #prepare(path: string, options: RequestOptions): PreparedRequest {
    const { body, headers } = options
    const { baseUrl, fetch: customFetch } = this.#options
    const url = this.url(path, options.query)
    const { location } = globalThis as { location?: { href: string } }
    if (!customFetch && !URL.canParse(url, location?.href)) {
      const message = `baseUrl '${baseUrl}' is not a URL. Write it as http://localhost:4111.`
      throw new HeedError('invalid_argument', message, { details: { option: 'baseUrl' } })
    }
    const method = methodOf(options)
    if (body === undefined) return { url, method, headers: { ...headers } }
    return { url, method, headers: { 'content-type': 'application/json', ...headers }, body: encodeBody(body) }
  }

  async #send({ url, headers, ...init }: PreparedRequest, ownHeaders: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const response = await this.#fetch(url, { ...init, headers: { ...ownHeaders, ...headers }, signal })
    if (!response.ok) throw await readError(response)
    return response
  }
}

interface PreparedRequest {
  url: string
  method: string
  headers: Record<string, string>
  body?: BodyInit
  /** A body that is written as it comes. */
  duplex?: 'half'
}

/** Grows exponentially, with jitter. */
export function backoff(attempt: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 20)) * (0.5 + Math.random() / 2)
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

/** Not `randomUUID`, which pages without TLS don't have. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function unreachable(baseUrl: string, cause: unknown): HeedError {
  return new HeedError('unreachable', `The server at ${baseUrl} did not respond.`, { cause, retryable: true })
}

/** A request is not retried if the server's `Retry-After` is longer. */
const maxRetryAfterMs = 60_000

/** The `Retry-After` of a server's error. */
export function retryAfterMs(error: unknown): number {
  const ms = isHeedError(error) ? error.details?.retryAfterMs : undefined
  return typeof ms === 'number' && ms > 0 ? Math.min(ms, maxTimerMs) : 0
}

function isRetryable(error: unknown): boolean {
  return error instanceof HeedError && error.retryable
}

/** The server's error, with its code. */
async function readError(response: Response): Promise<HeedError> {
  const text = await response.text()
  let body: { error?: unknown; code?: unknown; retryable?: unknown; details?: unknown } = {}
  try {
    body = JSON.parse(text) as typeof body
  } catch {
    // A proxy responded: its text is quoted.
  }
  const code = typeof body.code === 'string' ? (body.code as HeedErrorCode) : 'unreachable'
  const message = typeof body.error === 'string' ? body.error : `The server responded with ${response.status}: ${text.slice(0, 200)}`
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new HeedError(code, message, {
    retryable: body.retryable === true || (response.status >= 500 && response.status !== 501) || response.status === 429,
    details: {
      ...(Number.isFinite(seconds) ? { retryAfterMs: seconds * 1_000 } : {}),
      ...(typeof body.details === 'object' ? body.details : {}),
      status: response.status,
    },
  })
}

function encodeQuery(query: Record<string, unknown> = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (value instanceof Date) search.set(name, value.toISOString())
    else search.set(name, typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

/** After events were read for this long, the other tasks of the process or page have their turn. */
const turnMs = 8

/**
 * The data of each server-sent event. Ends at `[DONE]` or at the end of the response; throws if the connection fails or is silent for
 * longer than `maxSilenceMs`. A reader that is slower than the server always finds events: without turns for other tasks, it would stop the
 * page that it is part of.
 */
export async function* readEvents(response: Response, maxSilenceMs: number): AsyncGenerator<unknown> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (!reader) return
  let rest = ''
  let turn = performance.now()
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), maxSilenceMs)
      if (done) return
      rest += value
      const frames = rest.split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const data = dataOf(frame)
        if (data === undefined) continue
        if (data === '[DONE]') return
        yield parse(data)
        if (performance.now() - turn < turnMs) continue
        await nextTurn()
        turn = performance.now()
      }
    }
  } finally {
    // Closes the connection if the reader stops early.
    await reader.cancel().catch(() => {})
  }
}

/** After the tasks that are due. Not by a timer where there is another way: hidden pages delay timers by a second and more. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve)
    else if (typeof MessageChannel === 'function') {
      const { port1, port2 } = new MessageChannel()
      port1.addEventListener('message', () => {
        port1.close()
        resolve()
      })
      port1.start()
      port2.postMessage(null)
    } else setTimeout(resolve)
  })
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data) as unknown
  } catch (cause) {
    throw lost('The stream has an event that is not JSON.', { cause })
  }
}

function dataOf(frame: string): string | undefined {
  const lines = frame.split('\n').filter((line) => line.startsWith('data:'))
  return lines.length === 0 ? undefined : lines.map((line) => line.slice(line.startsWith('data: ') ? 6 : 5)).join('\n')
}

/** Heartbeats are more frequent than `ms`, so silence means that the connection is dead. */
async function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(lost(`The server sent nothing for ${ms} ms.`, { details: { silenceMs: ms } })), ms)
  })
  try {
    return await Promise.race([work, late])
  } catch (cause) {
    throw isHeedError(cause) ? cause : lost('The connection was lost.', { cause })
  } finally {
    clearTimeout(timer)
  }
}

function lost(message: string, options: { cause?: unknown; details?: Record<string, unknown> }): HeedError {
  return new HeedError('unreachable', `${message} Subscribe again to continue.`, { ...options, retryable: true })
}

/** A type as it arrives in JSON: dates are strings, functions are omitted. */
export type OverWire<T> = T extends Date ? string
  : T extends (...args: never) => unknown ? never
  : T extends ReadonlyArray<infer Item> ? Array<OverWire<Item>>
  : T extends object ? { [Key in keyof T as T[Key] extends (...args: never) => unknown ? never : Key]: OverWire<T[Key]> }
  : T

/** A thread, and its resource if the principal has several. */
export interface ThreadScope {
  threadId: string
  resourceId?: string
}
