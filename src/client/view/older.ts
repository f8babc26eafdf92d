import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { MemoryClient } from '../memory.ts'
import type { ThreadView } from './thread-view.ts'

/** What is shown before the first message of a view, as long as the two join: a view begins with the newest messages only. */
export function olderThan<Shown extends { id: string }>({ hasOlder, messages }: Pick<ThreadView, 'hasOlder' | 'messages'>, shown: readonly Shown[]): readonly Shown[] {
  const [first] = messages
  const at = hasOlder && first ? shown.findIndex(({ id }) => id === first.id) : -1
  return at <= 0 ? [] : shown.slice(0, at)
}

/** Older messages of a thread, page by page. */
export class OlderMessages {
  #messages: readonly UIMessage[] = []
  /** Where the next page begins, and whether there is one; nothing before the first. */
  #place: { cursor?: string } | undefined
  #loading: Promise<void> | undefined

  get messages(): readonly UIMessage[] {
    return this.#messages
  }

  hasMore(view: ThreadView): boolean {
    return view.hasOlder && (this.#place === undefined || this.#place.cursor !== undefined)
  }

  /** The view begins anew: of what was shown, this is older. */
  keep(messages: readonly UIMessage[]): void {
    if (messages[0] !== this.#messages[0]) this.#place = undefined
    this.#messages = messages
  }

  /** The next page with anything that is not shown. Asked again meanwhile, it is the same page. `shown` answers what is there now. */
  load(memory: MemoryClient, threadId: string, shown: () => readonly UIMessage[]): Promise<void> {
    this.#loading ??= this.#load(memory, threadId, shown).finally(() => (this.#loading = undefined))
    return this.#loading
  }

  async #load(memory: MemoryClient, threadId: string, shown: () => readonly UIMessage[]): Promise<void> {
    for (;;) {
      const place = this.#place
      if (place && place.cursor === undefined) return
      const { uiMessages, nextCursor } = await memory.listMessages({ threadId, perPage: 100, ...(place?.cursor === undefined ? {} : { cursor: place.cursor }) })
      // The view began anew meanwhile: this page may not join it.
      if (this.#place !== place) continue
      this.#place = nextCursor === undefined ? {} : { cursor: nextCursor }
      const known = new Set(shown().map(({ id }) => id))
      const at = uiMessages.findIndex(({ id }) => known.has(id))
      const older = at < 0 ? (place ? uiMessages : []) : uiMessages.slice(0, at)
      if (older.length === 0) continue
      this.#messages = [...older, ...this.#messages]
      return
    }
  }
}
