import type { Agent, Chunk, ThreadSnapshot } from '../../src/index.ts'
import { isHeedError } from '../../src/base/errors.ts'
import { steadyNow, type JournalWriter, type SeenChunk } from './journal.ts'

/** Watches a thread, leaves after some chunks and comes back with its cursor, until it is stopped. */
export class Watcher {
  readonly #agent: Agent
  readonly #journal: JournalWriter
  readonly #name: string
  readonly #target: { threadId: string; resourceId: string }
  #after: string | undefined
  #stopped = false
  #leave: (() => void) | undefined
  readonly #begun = Promise.withResolvers<void>()

  constructor(agent: Agent, journal: JournalWriter, name: string, target: { threadId: string; resourceId: string }, after?: string) {
    this.#agent = agent
    this.#journal = journal
    this.#name = name
    this.#target = target
    this.#after = after
  }

  /** Resolves when it watches for the first time. */
  get begun(): Promise<void> {
    return this.#begun.promise
  }

  /** `stay`: how many chunks it reads before it leaves and returns. */
  async watch(stay: () => number): Promise<void> {
    while (!this.#stopped) {
      const since = steadyNow()
      const subscription = await this.#agent.subscribeToThread({ ...this.#target, ...(this.#after === undefined ? {} : { after: this.#after }) }).catch((error: unknown) => {
        // Its process closes while it returns.
        if (!this.#stopped || !isHeedError(error) || error.code !== 'closed') throw error
      })
      if (!subscription) return
      this.#journal.write({ note: 'watching', watcher: this.#name, thread: this.#target.threadId, since, ...(this.#after === undefined ? {} : { after: this.#after }) })
      this.#begun.resolve()
      this.#leave = () => subscription.unsubscribe()
      let left = stay()
      for await (const chunk of subscription.stream) {
        const seen = seenOf(chunk)
        this.#after = seen.cursor
        this.#journal.write({ note: 'seen', watcher: this.#name, thread: this.#target.threadId, ...seen })
        if (--left === 0) break
      }
      subscription.unsubscribe()
      // Ended without our doing: its Heed was closed.
      if (left > 0) return
    }
  }

  stop(): void {
    this.#stopped = true
    this.#leave?.()
  }
}

/** A chunk as it is noted. */
export function seenOf(chunk: Chunk): SeenChunk {
  const { type, cursor = '' } = chunk
  if ('payload' in chunk) {
    if (chunk.type !== 'text-delta') return { cursor, type }
    return { cursor, type, words: chunk.payload.text.trim().split(' ').map(Number) }
  }
  if (type !== 'data-thread-snapshot') {
    const { id } = chunk.data as { id?: string }
    return { cursor, type, ...(id === undefined ? {} : { id }) }
  }
  const { reason, messages } = chunk.data as ThreadSnapshot
  return { cursor, type, reason, messages: messages.map(({ id, role, content: { parts } }) => ({ id, role, text: role === 'signal' ? '' : parts.map((part) => (part.type === 'text' ? part.text : '')).join('') })) }
}
