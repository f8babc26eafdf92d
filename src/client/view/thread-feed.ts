import { isHeedError } from '../../base/errors.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { AgentClient } from '../agent.ts'
import { backoff, pause, type ThreadScope } from '../connection.ts'
import { emptyView, reduceChunk, type ThreadView } from './thread-view.ts'

interface FeedListener {
  /** A chunk, with the view after and before it. */
  onChunk(chunk: Chunk, view: ThreadView, before: ThreadView): void
  /** The stream has begun, for the first time or again. */
  onConnect?(): void
  /** The connection was lost and is opened again. With an `error`, the server rejected it: later attempts begin with a snapshot. */
  onLost?(error?: unknown): void
}

/** The single subscription of a page to a thread, shared by its listeners. It is open while there are listeners. */
export class ThreadFeed {
  /** The client for requests. A new one is used from the next request on. */
  agent: AgentClient
  readonly #scope: ThreadScope
  readonly #beside: { inbox: boolean; watches: boolean }
  readonly #listeners = new Set<FeedListener>()
  #view = emptyView
  #isReady = false
  #ready = quietDeferred()
  #subscription: AbortController | undefined
  #pause: AbortController | undefined

  /** `inbox`: also receive the numbers of pending and unread notifications; `watches`: what happens to watches. */
  constructor(agent: AgentClient, scope: ThreadScope, { inbox = false, watches = false }: { inbox?: boolean; watches?: boolean } = {}) {
    this.agent = agent
    this.#scope = scope
    this.#beside = { inbox, watches }
  }

  get view(): ThreadView {
    return this.#view
  }

  /** The server has sent a chunk: the view is that of the thread. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Resolves with the first chunk of the server; rejects if the server rejects the subscription. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener)
    if (!this.#subscription) {
      this.#isReady = false
      this.#ready = quietDeferred()
      const controller = new AbortController()
      this.#subscription = controller
      void this.#subscribe(controller.signal)
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#subscription?.abort()
      this.#subscription = undefined
    }
  }

  /** Changes the view by what only this client knows. */
  update(change: (view: ThreadView) => ThreadView): void {
    this.#view = change(this.#view)
  }

  /** Ends the pause before the next attempt. */
  reconnect(): void {
    this.#pause?.abort()
  }

  /** Which of these signals will never enter a run: cancelled, rejected or discarded. Without those whose state is unknown. */
  async findUndeliverable(ids: readonly string[]): Promise<string[]> {
    const found = await Promise.all(ids.map(async (id) => ((await this.#isUndeliverable(id)) ? [id] : [])))
    return found.flat()
  }

  async #isUndeliverable(signalId: string): Promise<boolean> {
    try {
      const { state } = await this.agent.explain({ ...this.#scope, signalId })
      return state === 'cancelled' || state === 'rejected'
    } catch (error) {
      return isHeedError(error) && error.code === 'not_found'
    }
  }

  async #subscribe(closed: AbortSignal): Promise<void> {
    for (let rejections = 0; !closed.aborted; rejections++) {
      const subscription = this.agent.watchThread({ ...this.#scope, snapshot: true, ...this.#beside })
      const unsubscribe = () => subscription.unsubscribe()
      closed.addEventListener('abort', unsubscribe, { once: true })
      try {
        const onLost = () => this.#notify((listener) => listener.onLost?.())
        const onOpen = () => this.#notify((listener) => listener.onConnect?.())
        for await (const chunk of subscription.chunks({ delayMs: 200, onLost, onOpen })) {
          if (closed.aborted) return
          rejections = 0
          this.#receive(chunk)
        }
      } catch (error) {
        if (closed.aborted) return
        this.#ready.reject(error)
        this.#isReady = false
        this.#ready = quietDeferred()
        this.#notify((listener) => listener.onLost?.(error))
      } finally {
        closed.removeEventListener('abort', unsubscribe)
        subscription.unsubscribe()
      }
      this.#pause = new AbortController()
      await pause(backoff(rejections, 1_000, 30_000), AbortSignal.any([closed, this.#pause.signal])).catch(() => {})
    }
  }

  #receive(chunk: Chunk): void {
    const before = this.#view
    this.#view = reduceChunk(before, chunk)
    this.#isReady = true
    this.#ready.resolve()
    this.#notify((listener) => listener.onChunk(chunk, this.#view, before))
  }

  #notify(call: (listener: FeedListener) => void): void {
    for (const listener of this.#listeners) call(listener)
  }
}

/** A promise whose rejection need not be handled. */
function quietDeferred(): PromiseWithResolvers<void> {
  const deferred = Promise.withResolvers<void>()
  deferred.promise.catch(() => {})
  return deferred
}
