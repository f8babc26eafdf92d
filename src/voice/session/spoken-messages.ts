import { SentenceCutter, type Sentence } from '../sentences.ts'
import { heardCharacters } from './heard.ts'
import type { SpokenItem } from './speech-queue.ts'

/** A message of the agent while it is spoken. */
export interface SpokenMessage {
  readonly id: string
  text: string
  readonly cutter: SentenceCutter
  readonly items: SpokenItem[]
  /** Nothing of it is spoken any more. */
  muted: boolean
  /** The agent has written all of it. */
  ended: boolean
}

/** What the user heard of a message. */
export interface HeardMessage {
  messageId: string
  characters: number
  ms: number
  text: string
  /** Items that the user did not hear to their end. */
  cut: SpokenItem[]
}

/** So many messages that were cut are known: their chunks may still arrive. */
const maxOver = 100

/** The messages of the agent that are spoken, or may be cut. */
export class SpokenMessages {
  readonly #messages = new Map<string, SpokenMessage>()
  /** The last messages that were cut. */
  readonly #over = new Set<string>()
  #present: SpokenMessage | undefined

  /** The message that the agent writes now. */
  get present(): SpokenMessage | undefined {
    return this.#present
  }

  /** The agent goes on with a message. `isIdle`: nothing of the ones before is or will be played. */
  begin(id: string, { isIdle, muted }: { isIdle: boolean; muted: boolean }): void {
    if (this.#present && this.#present.id !== id) this.#present.ended = true
    const known = this.#messages.get(id)
    if (known) {
      this.#present = known
      return
    }
    // Messages that were spoken are over; only the present one is kept beside those that are still to be spoken.
    if (isIdle) this.#messages.clear()
    const isOver = this.#over.has(id)
    this.#present = { id, text: '', cutter: new SentenceCutter(), items: [], muted: muted || isOver, ended: false }
    if (!isOver) this.#messages.set(id, this.#present)
  }

  /** The agent has written all of the present message. */
  end(): void {
    if (this.#present) this.#present.ended = true
  }

  /** A new item of a message, for a piece of its text. */
  addItem(message: SpokenMessage, piece: Sentence, id = `${message.id}:${message.items.length}`): SpokenItem {
    const item: SpokenItem = {
      ...piece, id, messageId: message.id, durationMs: Infinity, heardMs: 0, givenMs: 0, startsAt: undefined, begun: false,
    }
    message.items.push(item)
    return item
  }

  /** A player has played so much of an item. It can't have played more than it was given. */
  played(itemId: string, ms: number): void {
    for (const { items } of this.#messages.values()) {
      const item = items.find(({ id }) => id === itemId)
      if (item) item.heardMs = Math.max(item.heardMs, Math.min(ms, item.givenMs))
    }
  }

  /** All that was given has been played, by the clock. */
  playedAll(): void {
    for (const { items } of this.#messages.values()) for (const item of items) item.heardMs = Math.max(item.heardMs, item.givenMs)
  }

  /** Nothing of the messages is played any more. `now`: what was played until then is estimated by the clock. */
  mute(now?: number): void {
    for (const message of this.#messages.values()) {
      message.muted = true
      if (now === undefined) continue
      for (const item of message.items) {
        const elapsed = item.startsAt === undefined ? 0 : Math.max(0, now - item.startsAt)
        item.heardMs = Math.max(item.heardMs, Math.min(elapsed, item.givenMs))
      }
    }
  }

  /** What the user heard of the messages that they did not hear to their end. They are over. */
  takeHeard(): HeardMessage[] {
    const messages = [...this.#messages.values()]
    this.#messages.clear()
    return messages.flatMap(({ id, text, items, ended }) => {
      const characters = heardCharacters(text, items)
      if (ended && characters >= text.length) return []
      if (this.#over.add(id).size > maxOver) this.#over.delete([...this.#over][0] ?? '')
      const ms = Math.round(items.reduce((sum, item) => sum + Math.min(item.heardMs, item.durationMs), 0))
      const cut = items.filter(({ heardMs, durationMs }) => heardMs < durationMs)
      return [{ messageId: id, characters, ms, text: text.slice(0, characters), cut }]
    })
  }
}
