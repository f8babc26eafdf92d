import { isHeedError } from '../base/errors.ts'
import type { Chunk } from '../run/chunk.ts'
import { cursorHeader } from '../base/stream-headers.ts'
import { askedToWaitMs, backoff, pause, type Connection } from './connection.ts'
import { readEvents } from './read-events.ts'

export interface SubscribeParams {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was seen. */
  after?: string
  /** Begin with a snapshot, then the live edge. */
  snapshot?: boolean
  /** Also be told how many notifications of the thread wait and are unread: `data-inbox`, where the server can. */
  inbox?: boolean
}

export interface Reconnect {
  /** How often in a row it may be looked for in vain. Defaults to no limit. */
  maxRetries?: number
  /** The first pause; it grows with every failure and starts over once the server has begun to tell. Defaults to 500 ms. */
  delayMs?: number
  /** Called whenever the connection is lost and will be looked for again. */
  onLost?: () => void
  /** Called whenever the server has begun to tell, the first time too. */
  onOpen?: () => void
}

export interface ProcessOptions {
  /** Called with each chunk, one after the other. What it throws ends the stream. */
  onChunk: (chunk: Chunk) => void | Promise<void>
  /** Subscribe again from the last cursor when the connection is lost. Defaults to false. */
  reconnect?: boolean | Reconnect
}

/** A thread as it is watched from afar: it goes on from its cursor, without a gap and without a repeat. */
export class ThreadSubscription {
  readonly #connection: Connection
  readonly #path: string
  readonly #params: SubscribeParams
  readonly #over: AbortController
  #response: Response | undefined
  #cursor: string | undefined
  #runId: string | null = null

  /** @internal */
  constructor(connection: Connection, path: string, params: SubscribeParams, response?: Response, over = new AbortController()) {
    this.#over = over
    this.#connection = connection
    this.#path = path
    this.#params = params
    this.#response = response
    this.#cursor = params.after
  }

  /** @internal */
  static async open(connection: Connection, path: string, params: SubscribeParams): Promise<ThreadSubscription> {
    const over = new AbortController()
    return new ThreadSubscription(connection, path, params, await connection.events(`${path}/subscribe`, { body: params, signal: over.signal }), over)
  }

  /** The cursor of the last chunk that was handed on, or of the place where it began. Keep it to go on from there later. */
  get cursor(): string | undefined {
    return this.#cursor
  }

  activeRunId(): string | null {
    return this.#runId
  }

  /** Hands on every chunk until the stream ends, or for good with `reconnect`. */
  async processDataStream({ onChunk, reconnect = false }: ProcessOptions): Promise<void> {
    for await (const chunk of this.chunks(reconnect)) await onChunk(chunk)
  }

  /** The same as something to loop over. */
  async *chunks(reconnect: boolean | Reconnect = true): AsyncGenerator<Chunk, void> {
    const { maxRetries = Infinity, delayMs = 500, onLost, onOpen } = typeof reconnect === 'object' ? reconnect : {}
    const { signal } = this.#connection
    const ended = signal ? AbortSignal.any([this.#over.signal, signal]) : this.#over.signal
    let failures = 0
    while (!this.#over.signal.aborted) {
      let failure: unknown
      let isCallers = false
      try {
        const response = this.#response ?? (await this.#subscribe())
        this.#response = undefined
        failures = 0
        try {
          onOpen?.()
        } catch (error) {
          isCallers = true
          await response.body?.cancel().catch(() => {})
          throw error
        }
        // Whoever is cut off before the first chunk goes on from where it began.
        this.#cursor ??= response.headers.get(cursorHeader) ?? undefined
        for await (const value of readEvents(response, this.#connection.silenceOf(response))) {
          const chunk = value as Chunk
          this.#seen(chunk)
          yield chunk
        }
        if (reconnect === false) return
      } catch (error) {
        if (this.#over.signal.aborted) return
        signal?.throwIfAborted()
        // What a callback throws, asking again doesn't mend; a token that can't be had now may be had later.
        if (isCallers || reconnect === false || failures >= maxRetries || isFinal(error)) throw error
        failure = error
      }
      if (failures++ >= maxRetries) return
      onLost?.()
      await pause(Math.max(backoff(failures - 1, delayMs, 30_000), askedToWaitMs(failure)), ended).catch(() => {})
    }
  }

  /** Aborts what is active on the thread. */
  async abort(options: { clearPendingSignals?: boolean } = {}): Promise<boolean> {
    const { threadId, resourceId } = this.#params
    const { aborted } = await this.#connection.json<{ aborted: boolean }>(`${this.#path}/abort`, { body: { threadId, resourceId, ...options } })
    return aborted
  }

  /** Stops watching; the run goes on. */
  unsubscribe(): void {
    this.#over.abort()
  }

  #subscribe(): Promise<Response> {
    const { threadId, resourceId, snapshot, inbox } = this.#params
    const body = { threadId, resourceId, inbox, ...(this.#cursor === undefined ? { snapshot } : { after: this.#cursor }) }
    return this.#connection.events(`${this.#path}/subscribe`, { body, signal: this.#over.signal })
  }

  #seen(chunk: Chunk): void {
    this.#cursor = chunk.cursor ?? this.#cursor
    if (chunk.type === 'start') this.#runId = chunk.runId
    else if (chunk.type === 'finish' || chunk.type === 'error' || chunk.type === 'abort') this.#runId = null
  }
}

/** Asking again would be answered the same. */
function isFinal(error: unknown): boolean {
  return isHeedError(error) && !error.retryable
}
