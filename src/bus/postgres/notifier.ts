import { fail, type Connect, type NotifyClient } from './client.ts'

/** A message for one channel. */
export interface Outgoing {
  channel: string
  payload: string
}

/** Bells that follow the first within this time go together. */
const gatherMs = 10
/** The bytes of messages that are not sent yet; more are lost. */
const maxWaiting = 8_000_000

const text = 'SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS sent (channel, payload)'

/**
 * Sends what this process has to say, on a connection of its own and never in a transaction of a store: a transaction that notifies holds
 * a lock of the whole server while it commits. A batch that fails is lost; its numbers are missing at the receivers.
 */
export class Notifier {
  readonly #connect: Connect
  readonly #onFailure: (error: unknown) => void
  #client: Promise<NotifyClient> | undefined
  #waiting: Outgoing[] = []
  #bytes = 0
  #sending: Promise<void> | undefined
  #closed = false

  /** `onFailure` is called for each batch that is lost. */
  constructor(connect: Connect, onFailure: (error: unknown) => void) {
    this.#connect = connect
    this.#onFailure = onFailure
  }

  send(outgoing: readonly Outgoing[]): void {
    if (this.#closed) return
    for (const one of outgoing) {
      if (this.#bytes + one.payload.length > maxWaiting) continue
      this.#bytes += one.payload.length
      this.#waiting.push(one)
    }
    this.#sending ??= this.#pump()
  }

  /** Resolves when all that was sent before is committed, or lost. */
  async flush(): Promise<void> {
    while (this.#sending) await this.#sending
  }

  async close(): Promise<void> {
    await this.flush()
    this.#closed = true
    await (await this.#client?.catch(() => undefined))?.end().catch(() => {})
  }

  async #pump(): Promise<void> {
    // Messages of the same turn of the event loop go together.
    await new Promise<void>((resolve) => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0)
      this.#bytes = 0
      const since = performance.now()
      await this.#notify(batch).catch(this.#onFailure)
      const left = gatherMs - (performance.now() - since)
      // Under load others gather meanwhile. A single message waits for nothing.
      if (batch.length > 1 && this.#waiting.length > 0 && left > 0) await new Promise<void>((resolve) => setTimeout(resolve, left))
    }
    this.#sending = undefined
  }

  async #notify(batch: readonly Outgoing[]): Promise<void> {
    this.#client ??= this.#connect()
    const connecting = this.#client
    try {
      const client = await connecting
      await client.query(text, [batch.map(({ channel }) => channel), batch.map(({ payload }) => payload)])
    } catch (error) {
      if (this.#client === connecting) this.#client = undefined
      connecting.then((client) => fail(client), () => {})
      throw error
    }
  }
}
