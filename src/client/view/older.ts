import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { MemoryClient } from '../memory.ts'
import type { ThreadView } from './thread-view.ts'

/** The displayed messages before the first message of a view, if the view continues them: a view begins with the newest messages only. */
export function olderThan<Shown extends { id: string }>(
  { hasOlder, messages }: Pick<ThreadView, 'hasOlder' | 'messages'>,
  shown: readonly Shown[],
): readonly Shown[] {
  const [first] = messages
  const index = hasOlder && first ? shown.findIndex(({ id }) => id === first.id) : -1
  return index <= 0 ? [] : shown.slice(0, index)
}

/** Older messages of a thread, page by page. */
export class OlderMessages {
  #messages: readonly UIMessage[] = []
  /** The cursor of the next page, if there is one. Undefined before the first page is loaded. */
  #next: { cursor?: string } | undefined
  #loading: Promise<void> | undefined

  get messages(): readonly UIMessage[] {
    return this.#messages
  }

  hasMore(view: ThreadView): boolean {
    return view.hasOlder && (this.#next === undefined || this.#next.cursor !== undefined)
  }

  /** Keeps these messages when a snapshot replaces the view. */
  keep(messages: readonly UIMessage[]): void {
    if (messages[0] !== this.#messages[0]) this.#next = undefined
    this.#messages = messages
  }

  /** Loads pages until one has a message that is not displayed. Concurrent calls load one page. `shown` returns the displayed messages. */
  load(memory: MemoryClient, threadId: string, shown: () => readonly UIMessage[]): Promise<void> {
    this.#loading ??= this.#load(memory, threadId, shown).finally(() => (this.#loading = undefined))
    return this.#loading
  }

  async #load(memory: MemoryClient, threadId: string, shown: () => readonly UIMessage[]): Promise<void> {
    for (;;) {
      const next = this.#next
      if (next && next.cursor === undefined) return
      const from = next?.cursor === undefined ? {} : { cursor: next.cursor }
      const { uiMessages, nextCursor } = await memory.listMessages({ threadId, perPage: 100, ...from })
      // A snapshot replaced the view in the meantime: this page may not be adjacent to it.
      if (this.#next !== next) continue
      this.#next = nextCursor === undefined ? {} : { cursor: nextCursor }
      const known = new Set(shown().map(({ id }) => id))
      const index = uiMessages.findIndex(({ id }) => known.has(id))
      const older = index < 0 ? (next ? uiMessages : []) : uiMessages.slice(0, index)
      if (older.length === 0) continue
      this.#messages = [...older, ...this.#messages]
      return
    }
  }
}
