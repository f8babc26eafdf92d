import type { UIMessage } from '../../message/ui-message.ts'
import type { WatchedThread } from '../view/watched-thread.ts'

/**
 * One thread on one page: the streams with which the page reads answers to its own messages, and beside them those who follow the thread.
 * While a stream is open, it alone writes.
 */
export class ChatPage {
  readonly #awaited = new Set<string>()
  readonly #followers = new Set<() => void>()
  #streams = 0
  #lastSent: string | undefined
  /** A stream wrote since the thread was last shown: a view that lags behind it must not take anything back. */
  #ahead = false

  get isFollowed(): boolean {
    return this.#followers.size > 0
  }

  get isIdle(): boolean {
    return this.#followers.size === 0 && this.#streams === 0
  }

  /** Another stream of the page waits for the answer to this message: it goes on where others stop. */
  awaits(messageId: string): boolean {
    return this.#awaited.has(messageId)
  }

  /** A stream begins, with the answer to a message of the page where there is one. Answers how to end it. */
  begin(from: string | undefined): () => void {
    this.#streams++
    this.#ahead = true
    if (from !== undefined) {
      this.#awaited.add(from)
      this.#lastSent = from
    }
    let over = false
    return () => {
      if (over) return
      over = true
      this.#streams--
      if (from !== undefined) this.#awaited.delete(from)
      // After the page has read what was written last.
      if (this.#streams === 0) setTimeout(() => this.#show(), 0)
    }
  }

  /** The stream can't say what comes: those who follow do. */
  handOver(): void {
    this.#ahead = false
  }

  /** `setMessages` is given what makes the messages of what the page has. */
  follow(watched: WatchedThread, setMessages: (update: (current: readonly UIMessage[]) => readonly UIMessage[]) => void): () => void {
    const show = () => {
      const { messages, status, connection } = watched.getSnapshot()
      if (this.#streams > 0 || connection !== 'live') return
      if (this.#ahead && (status === 'running' || !this.#knows(messages))) return
      this.#ahead = false
      const ids = new Set(messages.map(({ id }) => id))
      // A view that began amid a run is whole only when it has heard all that the run said: until then it takes nothing away.
      setMessages((current) => (status === 'running' && current.some(({ id }) => !ids.has(id)) ? current : messages))
    }
    const unsubscribe = watched.subscribe(show)
    this.#followers.add(show)
    return () => {
      this.#followers.delete(show)
      unsubscribe()
    }
  }

  #knows(messages: readonly UIMessage[]): boolean {
    return this.#lastSent === undefined || messages.some(({ id }) => id === this.#lastSent)
  }

  #show(): void {
    for (const show of this.#followers) show()
  }
}
