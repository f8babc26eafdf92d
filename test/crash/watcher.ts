import type { Agent, Chunk } from '../../src/index.ts'
import type { JournalWriter, SeenChunk } from './journal.ts'

/** Watches a thread, leaves after some chunks and comes back with its cursor, until it is told to stop. */
export class Watcher {
  readonly #agent: Agent
  readonly #journal: JournalWriter
  readonly #name: string
  readonly #target: { threadId: string; resourceId: string }
  #after: string | undefined
  #stopped = false
  #leave: (() => void) | undefined

  constructor(agent: Agent, journal: JournalWriter, name: string, target: { threadId: string; resourceId: string }, after?: string) {
    this.#agent = agent
    this.#journal = journal
    this.#name = name
    this.#target = target
    this.#after = after
  }

  /** `stay`: how many chunks it reads before it leaves and returns. */
  async watch(stay: () => number): Promise<void> {
    while (!this.#stopped) {
      const subscription = await this.#agent.subscribeToThread({ ...this.#target, ...(this.#after === undefined ? {} : { after: this.#after }) })
      this.#journal.write({ note: 'watching', watcher: this.#name, thread: this.#target.threadId, ...(this.#after === undefined ? {} : { after: this.#after }) })
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

function seenOf(chunk: Chunk): SeenChunk {
  const { type, cursor = '' } = chunk
  if ('payload' in chunk) {
    if (chunk.type !== 'text-delta') return { cursor, type }
    return { cursor, type, words: chunk.payload.text.trim().split(' ').map(Number) }
  }
  const data = chunk.data as { id?: string; reason?: string; messages?: Array<{ id: string; role: string }> }
  if (type !== 'data-thread-snapshot') return { cursor, type, ...(data.id === undefined ? {} : { id: data.id }) }
  return { cursor, type, reason: data.reason ?? '', ids: (data.messages ?? []).flatMap(({ id, role }) => (role === 'signal' ? [id] : [])) }
}
