import type { VoiceSessionEvent } from '../../voice/contract.ts'

/** What happens to the connection of a session. `restarted`: the session was over, and another one goes on with the thread. */
export interface VoiceConnectionEvent {
  type: 'connection'
  state: 'open' | 'lost' | 'resumed' | 'restarted'
}

/** An event of a session over a WebSocket. */
export type RemoteVoiceEvent = VoiceSessionEvent | VoiceConnectionEvent

interface Received {
  event: RemoteVoiceEvent
  seq: number | undefined
}

const ofSound: ReadonlySet<string> = new Set(['audio', 'sentence', 'caption', 'item-end'])

/** The events of a session for one reader, which acknowledges what it has read: the server sends no more sound than the reader takes. */
export class ReceivedEvents implements AsyncIterable<RemoteVoiceEvent> {
  readonly #acknowledge: (seq: number) => void
  #events: Received[] = []
  #closed = false
  #wake: (() => void) | undefined

  constructor(acknowledge: (seq: number) => void) {
    this.#acknowledge = acknowledge
  }

  push(event: RemoteVoiceEvent, seq?: number): void {
    if (this.#closed) return
    // Sound that was not read yet must not be played after this.
    if (event.type === 'clear') this.#events = this.#events.filter((one) => !ofSound.has(one.event.type))
    this.#events.push({ event, seq })
    this.#wake?.()
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RemoteVoiceEvent> {
    for (;;) {
      const next = this.#events.shift()
      if (next) {
        if (next.seq !== undefined) this.#acknowledge(next.seq)
        yield next.event
      } else if (this.#closed) return
      else {
        const { promise, resolve } = Promise.withResolvers<void>()
        this.#wake = resolve
        await promise
      }
    }
  }
}
