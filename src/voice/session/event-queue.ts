import { HeedError } from '../../base/errors.ts'
import type { VoiceSessionEvent } from '../contract.ts'

/** A reader that falls so far behind gets no more sound until it has read; of other events it loses the oldest, and gets an error. */
const maxAudio = 64
const maxEvents = 1_000

const ofSound: ReadonlySet<string> = new Set(['audio', 'sentence', 'caption', 'item-end'])

/** The events of a session for one reader. */
export class EventQueue implements AsyncIterable<VoiceSessionEvent> {
  #events: VoiceSessionEvent[] = []
  #audio = 0
  #lost = 0
  #closed = false
  #wake: (() => void) | undefined
  #room: PromiseWithResolvers<void> | undefined

  push(event: VoiceSessionEvent): void {
    if (this.#closed) return
    // Sound that was not read yet must not be played after this.
    if (event.type === 'clear') this.#drop(({ type }) => ofSound.has(type))
    if (event.type === 'audio') this.#audio++
    this.#events.push(event)
    if (this.#events.length > maxEvents) {
      this.#lost++
      this.#drop((one) => one === this.#events[0])
    }
    this.#wake?.()
  }

  /** Resolves when sound may be pushed; undefined where it may be at once. */
  room(): Promise<void> | undefined {
    if (this.#audio < maxAudio || this.#closed) return undefined
    this.#room ??= Promise.withResolvers()
    return this.#room.promise
  }

  close(): void {
    this.#closed = true
    this.#wake?.()
    this.#makeRoom()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<VoiceSessionEvent> {
    for (;;) {
      if (this.#lost > 0) yield this.#loss()
      const event = this.#events.shift()
      if (event) {
        if (event.type === 'audio' && --this.#audio < maxAudio) this.#makeRoom()
        yield event
      } else if (this.#closed) return
      else {
        const { promise, resolve } = Promise.withResolvers<void>()
        this.#wake = resolve
        await promise
      }
    }
  }

  #loss(): VoiceSessionEvent {
    const message = `The oldest ${this.#lost} events were lost, since they were not read. Read session.events as they come.`
    const error = new HeedError('voice_overrun', message, { details: { events: this.#lost } })
    this.#lost = 0
    return { type: 'error', error }
  }

  #drop(isDropped: (event: VoiceSessionEvent) => boolean): void {
    this.#events = this.#events.filter((event) => !isDropped(event))
    this.#audio = this.#events.filter(({ type }) => type === 'audio').length
    if (this.#audio < maxAudio) this.#makeRoom()
  }

  #makeRoom(): void {
    this.#room?.resolve()
    this.#room = undefined
  }
}
