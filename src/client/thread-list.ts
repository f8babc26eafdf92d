import type { ThreadChange } from '../thread/stream/thread-changes.ts'
import type { Connection, OverWire } from './connection.ts'
import type { MemoryScope } from './memory.ts'
import { reconnecting, type Reconnect } from './reconnecting.ts'

/** A subscription to the list of threads of a resource. */
export class ThreadListSubscription {
  readonly #connection: Connection
  readonly #query: MemoryScope
  readonly #closed: AbortController
  #response: Response | undefined

  private constructor(connection: Connection, query: MemoryScope, response: Response, closed: AbortController) {
    this.#connection = connection
    this.#query = query
    this.#response = response
    this.#closed = closed
  }

  /** @internal */
  static async open(connection: Connection, query: MemoryScope): Promise<ThreadListSubscription> {
    const closed = new AbortController()
    return new ThreadListSubscription(connection, query, await request(connection, query, closed.signal), closed)
  }

  /**
   * The threads that change, as they are then: new ones, deleted ones, and those whose status, run, title, process or time changed. Nothing
   * is reported of the time without a connection: read the list again in `onOpen`.
   */
  async *changes(reconnect: boolean | Reconnect = true): AsyncGenerator<OverWire<ThreadChange>, void> {
    const open = () => {
      const response = this.#response
      this.#response = undefined
      return response ?? request(this.#connection, this.#query, this.#closed.signal)
    }
    for await (const event of reconnecting(this.#connection, { open, closed: this.#closed.signal }, reconnect)) {
      yield (event as { data: OverWire<ThreadChange> }).data
    }
  }

  unsubscribe(): void {
    this.#closed.abort()
  }
}

function request(connection: Connection, query: MemoryScope, signal: AbortSignal): Promise<Response> {
  return connection.events('/events', { method: 'GET', query: { ...query }, signal })
}
