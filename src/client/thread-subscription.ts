import { checkNames, refused } from '../base/arguments.ts'
import { cursorHeader } from '../base/stream-headers.ts'
import type { Chunk } from '../message/chunk.ts'
import type { Connection } from './connection.ts'
import { reconnecting, type Reconnect } from './reconnecting.ts'

/** Which thread is subscribed to, and from where. */
export interface SubscribeParams {
  threadId: string
  resourceId?: string
  /** The cursor of the last chunk that was received. */
  after?: string
  /** Begin with a snapshot, followed by new chunks. With `after`, the chunks after it come instead, if they are retained. */
  snapshot?: boolean
  /** Also receive the numbers of pending and unread notifications, as `data-inbox`, from servers that send them. */
  inbox?: boolean
  /** Also receive what happens to the watches of the thread, as `data-watch` (`WatchEvent`), from servers that send it. */
  watches?: boolean
}

export const subscribeFields = ['threadId', 'resourceId', 'after', 'snapshot', 'inbox', 'watches']

/** What happens with the chunks of a subscription. */
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
    if (typeof onChunk !== 'function') throw refused('onChunk', 'a function')
    for await (const chunk of this.chunks(reconnect)) await onChunk(chunk)
  }

  /** The same as an async iterable. */
  async *chunks(reconnect: boolean | Reconnect = true): AsyncGenerator<Chunk, void> {
    const source = {
      open: () => {
        const response = this.#response
        this.#response = undefined
        return response ?? this.#subscribe()
      },
      // If the connection is lost before the first chunk, the stream continues from its start.
      onResponse: (response: Response) => {
        this.#cursor ??= response.headers.get(cursorHeader) ?? undefined
      },
      closed: this.#closed.signal,
    }
    for await (const value of reconnecting(this.#connection, source, reconnect)) {
      const chunk = value as Chunk
      this.#track(chunk)
      yield chunk
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
