import type { DataChunk } from '../../message/chunk.ts'

/** A thread, and the resource that an event of it belongs to. */
interface Place {
  threadId: string
  resourceId: string
}

type Listener = (chunk: DataChunk, resourceId: string) => void

/**
 * Chunks beside the streams of threads: events that change nothing of a thread, such as those of its watches. They have no cursor, are not
 * retained, and reach the subscribers that exist when they are emitted.
 */
export class SideChunks {
  readonly #listeners = new Map<string, Set<Listener>>()

  /** Returns a function that ends it. */
  listen(threadId: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(threadId) ?? new Set()
    this.#listeners.set(threadId, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(threadId) === listeners) this.#listeners.delete(threadId)
    }
  }

  emit({ threadId, resourceId }: Place, chunk: DataChunk): void {
    for (const listener of this.#listeners.get(threadId) ?? []) listener(chunk, resourceId)
  }
}
