import { checkNames } from '../base/arguments.ts'
import { isHeedError } from '../base/errors.ts'
import { cursorHeader } from '../base/stream-headers.ts'
import type { Chunk } from '../message/chunk.ts'
import { backoff, pause, readEvents, retryAfterMs, type Connection } from './connection.ts'

export interface SubscribeParams {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was received. */
  after?: string
  /** Begin with a snapshot, followed by new chunks. */
  snapshot?: boolean
  /** Also receive the numbers of pending and unread notifications, as `data-inbox`, from servers that send them. */
  inbox?: boolean
  /** Also receive what happens to the watches of the thread, as `data-watch` (`WatchEvent`), from servers that send it. */
  watches?: boolean
}

export const subscribeFields = ['threadId', 'resourceId', 'after', 'snapshot', 'inbox', 'watches']

export interface Reconnect {
  /** How many attempts in a row may fail. Defaults to no limit. */
  maxRetries?: number
  /** The first pause; it grows with every failure and is reset when a stream begins. Defaults to 500 ms. */
  delayMs?: number
  /** Called when the connection is lost, before it is opened again. */
  onLost?: () => void
  /** Called when a stream has begun, also the first time. */
  onOpen?: () => void
}

export interface ProcessOptions {
  /** Called with each chunk, one after the other. An error that it throws ends the stream. */
  onChunk: (chunk: Chunk) => void | Promise<void>
  /** Subscribe again from the last cursor when the connection is lost. Defaults to false. */
  reconnect?: boolean | Reconnect
}

/** A subscription to a thread of a server. It reconnects at its cursor: no chunk is missed or repeated. */
export class ThreadSubscription {
  readonly #connection: Connection
  readonly #path: string
  readonly #params: SubscribeParams
  readonly #closed: AbortController
  #response: Response | undefined
  #cursor: string | undefined
  #runId: string | null = null

  /** @internal */
  constructor(connection: Connection, path: string, params: SubscribeParams, response?: Response, closed = new AbortController()) {
    this.#closed = closed
    this.#connection = connection
    this.#path = path
    this.#params = params
    this.#response = response
    this.#cursor = params.after
  }

  /** @internal */
  static async open(connection: Connection, path: string, params: SubscribeParams): Promise<ThreadSubscription> {
    const closed = new AbortController()
    const response = await connection.events(`${path}/subscribe`, { body: params, signal: closed.signal })
    return new ThreadSubscription(connection, path, params, response, closed)
  }

  /** The cursor of the last chunk, or of the start of the stream. Store it to continue from there later. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  activeRunId(): string | null {
    return this.#runId
  }

  /** Calls `onChunk` until the stream ends; with `reconnect`, until `unsubscribe()`. */
  async processDataStream(options: ProcessOptions): Promise<void> {
    checkNames('processDataStream()', options, ['onChunk', 'reconnect'])
    const { onChunk, reconnect = false } = options
    for await (const chunk of this.chunks(reconnect)) await onChunk(chunk)
  }

  /** The same as an async iterable. */
  async *chunks(reconnect: boolean | Reconnect = true): AsyncGenerator<Chunk, void> {
    if (typeof reconnect === 'object') checkNames('reconnect', reconnect, ['maxRetries', 'delayMs', 'onLost', 'onOpen'])
    const { maxRetries = Infinity, delayMs = 500, onLost, onOpen } = typeof reconnect === 'object' ? reconnect : {}
    const { signal } = this.#connection
    const stopped = signal ? AbortSignal.any([this.#closed.signal, signal]) : this.#closed.signal
    let failures = 0
    while (!this.#closed.signal.aborted) {
      let failure: unknown
      let isCallbackError = false
      try {
        const response = this.#response ?? (await this.#subscribe())
        this.#response = undefined
        failures = 0
        try {
          onOpen?.()
        } catch (error) {
          isCallbackError = true
          await response.body?.cancel().catch(() => {})
          throw error
        }
        // If the connection is lost before the first chunk, the stream continues from its start.
        this.#cursor ??= response.headers.get(cursorHeader) ?? undefined
        for await (const value of readEvents(response, this.#connection.maxSilenceMs(response))) {
          const chunk = value as Chunk
          this.#track(chunk)
          yield chunk
        }
        if (reconnect === false) return
      } catch (error) {
        if (this.#closed.signal.aborted) return
        signal?.throwIfAborted()
        // An error of a callback is final. An error of the `headers` function is not: a token may be available later.
        if (isCallbackError || reconnect === false || failures >= maxRetries || isFinal(error)) throw error
        failure = error
      }
      if (failures++ >= maxRetries) return
      onLost?.()
      await pause(Math.max(backoff(failures - 1, delayMs, 30_000), retryAfterMs(failure)), stopped).catch(() => {})
    }
  }

  /** Aborts the active run of the thread. */
  async abort(options: { clearPendingSignals?: boolean } = {}): Promise<boolean> {
    checkNames('abort()', options, ['clearPendingSignals'])
    const { threadId, resourceId } = this.#params
    const { aborted } = await this.#connection.json<{ aborted: boolean }>(`${this.#path}/abort`, {
      body: { threadId, resourceId, ...options },
    })
    return aborted
  }

  /** Ends the subscription; the run continues. */
  unsubscribe(): void {
    this.#closed.abort()
  }

  #subscribe(): Promise<Response> {
    const { threadId, resourceId, snapshot, inbox, watches } = this.#params
    const body = { threadId, resourceId, inbox, watches, ...(this.#cursor === undefined ? { snapshot } : { after: this.#cursor }) }
    return this.#connection.events(`${this.#path}/subscribe`, { body, signal: this.#closed.signal })
  }

  #track(chunk: Chunk): void {
    this.#cursor = chunk.cursor ?? this.#cursor
    if (chunk.type === 'start') this.#runId = chunk.runId
    else if (chunk.type === 'finish' || chunk.type === 'error' || chunk.type === 'abort') this.#runId = null
  }
}

/** A new attempt would get the same error. */
function isFinal(error: unknown): boolean {
  return isHeedError(error) && !error.retryable
}
