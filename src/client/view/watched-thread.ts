import type { JSONValue } from '../../json.ts'
import type { UIMessage } from '../../message/ui-message.ts'
import type { MessageInput } from '../../signals/signal.ts'
import { describe } from '../../errors.ts'
import type { AgentClient, QueuedOverWire, SendTarget, ThreadScope } from '../agent.ts'
import { freshKey } from '../connection.ts'
import { optimisticMessage } from './optimistic.ts'
import { reduceChunk } from './reduce.ts'
import { emptyView, type ThreadView } from './thread-view.ts'

/** What a display needs of a thread: what was said, what is being said, what waits, and whether it is connected. */
export interface WatchedState extends ThreadView {
  /** `connecting` until the first words of the server, `lost` while it is looked for again. */
  connection: 'connecting' | 'live' | 'lost'
  /** What waits for its turn. */
  queued: readonly QueuedOverWire[]
  /** Notifications of the thread: not told yet, and not seen yet. Nothing until the server said so; older ones never do. */
  inbox: { pending: number; unread: number } | null
  /** The last send that was refused. */
  sendError: string | null
}

const ends: ReadonlySet<string> = new Set(['start', 'finish', 'abort', 'error', 'data-thread-snapshot'])

/**
 * A thread as a display watches it, for any framework: `subscribe` and `getSnapshot` are what React's `useSyncExternalStore` asks
 * for. It watches from the first listener to the last.
 */
export class WatchedThread {
  readonly #agent: AgentClient
  readonly #scope: ThreadScope
  readonly #listeners = new Set<() => void>()
  #state: WatchedState = { ...emptyView, connection: 'connecting', queued: [], inbox: null, sendError: null }
  #view: ThreadView = emptyView
  /** Sent from here and not yet heard of. */
  #sent: UIMessage[] = []
  #watching: AbortController | undefined

  constructor(agent: AgentClient, scope: ThreadScope) {
    this.#agent = agent
    this.#scope = scope
  }

  getSnapshot = (): WatchedState => this.#state

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (!this.#watching) this.#start()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#watching?.abort()
      this.#watching = undefined
    }
  }

  /** Shown at once; taken back, with the reason in `sendError`, when it is refused. */
  async send(message: MessageInput, options: Pick<SendTarget, 'ifActive' | 'ifIdle'> = {}): Promise<void> {
    const id = freshKey()
    this.#sent = [...this.#sent, optimisticMessage(id, message)]
    this.#show({ sendError: null })
    try {
      await this.#agent.sendMessage({ message: withId(message, id), ...this.#scope, ...options })
    } catch (error) {
      this.#sent = this.#sent.filter((sent) => sent.id !== id)
      this.#show({ sendError: describe(error) })
      throw error
    }
  }

  /** A turn of its own, after what is active. */
  async queue(message: MessageInput): Promise<void> {
    await this.#agent.queueMessage({ message, ...this.#scope })
    await this.#readQueue()
  }

  async cancelQueued(signalIds: string[]): Promise<void> {
    await this.#agent.cancelQueued({ ...this.#scope, signalIds })
    await this.#readQueue()
  }

  async reorderQueued(signalIds: string[]): Promise<void> {
    await this.#agent.reorderQueued({ ...this.#scope, signalIds })
    await this.#readQueue()
  }

  async approve(toolCallId: string): Promise<void> {
    await this.#agent.sendToolApproval({ ...this.#scope, toolCallId, approved: true })
  }

  async decline(toolCallId: string, reason?: string): Promise<void> {
    await this.#agent.sendToolApproval({ ...this.#scope, toolCallId, approved: false, ...(reason === undefined ? {} : { declineContext: { reason } }) })
  }

  async resume(toolCallId: string, resumeData: JSONValue): Promise<void> {
    await this.#agent.sendStreamResume({ ...this.#scope, toolCallId, resumeData })
  }

  abort(options: { clearPendingSignals?: boolean } = {}): Promise<boolean> {
    return this.#agent.abortThread({ ...this.#scope, ...options })
  }

  #start(): void {
    const watching = new AbortController()
    this.#watching = watching
    void this.#watch(watching.signal)
  }

  async #watch(over: AbortSignal): Promise<void> {
    const subscription = this.#agent.watchThread({ ...this.#scope, snapshot: true, inbox: true })
    over.addEventListener('abort', () => subscription.unsubscribe(), { once: true })
    try {
      for await (const chunk of subscription.chunks({ onLost: () => this.#show({ connection: 'lost' }) })) {
        if (over.aborted) return
        if (chunk.type === 'data-inbox' && 'data' in chunk) {
          const { pending, unread } = chunk.data as { pending: number; unread: number }
          this.#show({ inbox: { pending, unread } })
          continue
        }
        this.#view = reduceChunk(this.#view, chunk)
        if (chunk.type === 'data-user-message' && 'data' in chunk) this.#heard((chunk.data as { id: string }).id)
        this.#show({ connection: 'live' })
        if (ends.has(chunk.type)) await this.#readQueue()
      }
    } catch (error) {
      if (!over.aborted) this.#show({ connection: 'lost', sendError: describe(error) })
    }
  }

  #heard(id: string): void {
    this.#sent = this.#sent.filter((sent) => sent.id !== id)
  }

  /** What waits is asked for where it may have changed; a display that can't know it shows the last it knew. */
  async #readQueue(): Promise<void> {
    try {
      this.#show({ queued: await this.#agent.listQueued(this.#scope) })
    } catch {
      // A thread that doesn't exist yet has no queue, and older servers have none at all.
    }
  }

  #show(change: Partial<WatchedState>): void {
    const known = new Set(this.#view.messages.map(({ id }) => id))
    const unheard = this.#sent.filter(({ id }) => !known.has(id))
    this.#state = { ...this.#state, ...this.#view, ...change, messages: unheard.length === 0 ? this.#view.messages : [...this.#view.messages, ...unheard] }
    for (const listener of this.#listeners) listener()
  }
}

function withId(message: MessageInput, id: string): MessageInput {
  return typeof message === 'object' && !Array.isArray(message) ? { ...message, id } : { contents: message, id }
}
