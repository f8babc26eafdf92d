import type { Chunk } from '../../run/chunk.ts'
import type { AgentClient, ThreadScope } from '../agent.ts'
import { backoff, pause } from '../connection.ts'
import { reduceChunk } from './reduce.ts'
import { emptyView, type ThreadView } from './thread-view.ts'

export interface FeedListener {
  /** A chunk, and what it made of the view that was there before. */
  heard(chunk: Chunk, view: ThreadView, before: ThreadView): void
  /** The server tells what happens, from now on or again. */
  connected?(): void
  /** The connection is lost and looked for again. With an `error`, the server refused: it is asked again, more rarely, and then tells all anew. */
  lost?(error?: unknown): void
}

/** The one subscription of a page to a thread, for everybody there who wants a part of it. It is there from the first listener to the last. */
export class ThreadFeed {
  /** Whom to ask. Another one counts from the next request on. */
  agent: AgentClient
  readonly #scope: ThreadScope
  readonly #inbox: boolean
  readonly #listeners = new Set<FeedListener>()
  #view = emptyView
  #hasBegun = false
  #begun = resolvable()
  #watching: AbortController | undefined
  #pausing: AbortController | undefined

  /** `inbox`: also be told how many notifications wait. */
  constructor(agent: AgentClient, scope: ThreadScope, { inbox = false }: { inbox?: boolean } = {}) {
    this.agent = agent
    this.#scope = scope
    this.#inbox = inbox
  }

  get view(): ThreadView {
    return this.#view
  }

  /** The view is what the server said. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Resolves with the first word of the server: whatever happens from then on is heard. Rejects where it refuses. */
  get begun(): Promise<void> {
    return this.#begun.promise
  }

  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener)
    if (!this.#watching) {
      this.#hasBegun = false
      this.#begun = resolvable()
      const watching = new AbortController()
      this.#watching = watching
      void this.#watch(watching.signal)
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#watching?.abort()
      this.#watching = undefined
    }
  }

  /** What is known here and told by nobody. */
  change(change: (view: ThreadView) => ThreadView): void {
    this.#view = change(this.#view)
  }

  /** The server may answer again: it is asked now. */
  retry(): void {
    this.#pausing?.abort()
  }

  async #watch(over: AbortSignal): Promise<void> {
    for (let refusals = 0; !over.aborted; refusals++) {
      const subscription = this.agent.watchThread({ ...this.#scope, snapshot: true, inbox: this.#inbox })
      const leave = () => subscription.unsubscribe()
      over.addEventListener('abort', leave, { once: true })
      try {
        const onLost = () => this.#tell((listener) => listener.lost?.())
        const onOpen = () => this.#tell((listener) => listener.connected?.())
        for await (const chunk of subscription.chunks({ delayMs: 200, onLost, onOpen })) {
          if (over.aborted) return
          refusals = 0
          this.#hear(chunk)
        }
      } catch (error) {
        if (over.aborted) return
        this.#begun.reject(error)
        this.#hasBegun = false
        this.#begun = resolvable()
        this.#tell((listener) => listener.lost?.(error))
      } finally {
        over.removeEventListener('abort', leave)
        subscription.unsubscribe()
      }
      this.#pausing = new AbortController()
      await pause(backoff(refusals, 1_000, 30_000), AbortSignal.any([over, this.#pausing.signal])).catch(() => {})
    }
  }

  #hear(chunk: Chunk): void {
    const before = this.#view
    this.#view = reduceChunk(before, chunk)
    this.#hasBegun = true
    this.#begun.resolve()
    this.#tell((listener) => listener.heard(chunk, this.#view, before))
  }

  #tell(tell: (listener: FeedListener) => void): void {
    for (const listener of this.#listeners) tell(listener)
  }
}

/** A promise that nobody has to look at. */
function resolvable(): PromiseWithResolvers<void> {
  const made = Promise.withResolvers<void>()
  made.promise.catch(() => {})
  return made
}
