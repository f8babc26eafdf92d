import type { JSONValue } from '../../base/json.ts'
import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { Chunk } from '../../run/chunk.ts'
import type { MessageInput } from '../../signals/signal.ts'
import { describe, isHeedError } from '../../base/errors.ts'
import type { AgentClient, QueuedOverWire, SendTarget, ThreadScope } from '../agent.ts'
import { freshKey } from '../connection.ts'
import { givenUp } from './given-up.ts'
import { OlderMessages, olderThan } from './older.ts'
import { optimisticMessage } from './optimistic.ts'
import { withDecision } from './reduce.ts'
import { ThreadFeed } from './thread-feed.ts'
import { emptyView, type ThreadView } from './thread-view.ts'

/** What a display needs of a thread: what was said, what is being said, what waits, and whether it is connected. */
export interface WatchedState extends ThreadView {
  /** `connecting` until the first words of the server, `lost` while it is looked for again. */
  connection: 'connecting' | 'live' | 'lost'
  /** Why the server refuses to tell, while it does. It is asked again from time to time, and when something was sent. */
  connectionError: string | null
  /** What waits for its turn. */
  queued: readonly QueuedOverWire[]
  /** Notifications of the thread: not told yet, and not seen yet. Nothing until the server said so; older ones never do. */
  inbox: { pending: number; unread: number } | null
  /** The last send that was refused. */
  sendError: string | null
}

/** Sent from here and not yet heard of. */
interface Sent {
  message: UIMessage
  /** The server has it. */
  isAccepted: boolean
}

const ends: ReadonlySet<string> = new Set(['start', 'finish', 'abort', 'error', 'data-thread-snapshot'])

/**
 * A thread as a display watches it, for any framework: `subscribe` and `getSnapshot` are what React's `useSyncExternalStore` asks
 * for. It watches from the first listener to the last.
 */
export class WatchedThread {
  readonly #feed: ThreadFeed
  readonly #scope: ThreadScope
  readonly #listeners = new Set<() => void>()
  #state: WatchedState = { ...emptyView, connection: 'connecting', connectionError: null, queued: [], inbox: null, sendError: null }
  readonly #sent = new Map<string, Sent>()
  readonly #older = new OlderMessages()
  /** How often the queue was asked for: of two answers the later counts. */
  #asked = 0
  #leave: (() => void) | undefined

  constructor(agent: AgentClient, scope: ThreadScope) {
    this.#feed = new ThreadFeed(agent, scope, { inbox: true })
    this.#scope = scope
  }

  /** Whom to ask. Another one of the same server counts from the next request on. */
  get agent(): AgentClient {
    return this.#feed.agent
  }

  set agent(agent: AgentClient) {
    this.#feed.agent = agent
  }

  getSnapshot = (): WatchedState => this.#state

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    this.#leave ??= this.#feed.listen({
      heard: (chunk) => this.#hear(chunk),
      connected: () => this.#connected(),
      lost: (error) => this.#show({ connection: 'lost', ...(error === undefined ? {} : { connectionError: describe(error) }) }),
    })
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#leave?.()
      this.#leave = undefined
    }
  }

  /** Shown at once; taken back, with the reason in `sendError`, when it is refused. */
  async send(message: MessageInput, options: Pick<SendTarget, 'ifActive' | 'ifIdle'> = {}): Promise<void> {
    const { id = freshKey(), ...rest } = typeof message === 'object' && !Array.isArray(message) ? message : { contents: message }
    const sent: Sent = { message: optimisticMessage(id, message), isAccepted: false }
    this.#sent.set(id, sent)
    this.#show({ sendError: null })
    try {
      await this.agent.sendMessage({ message: { ...rest, id }, ...this.#scope, ...options })
    } catch (error) {
      if (this.#sent.get(id) === sent) this.#sent.delete(id)
      this.#show({ sendError: describe(error) })
      throw error
    }
    sent.isAccepted = true
    this.#feed.retry()
    if (options.ifActive?.behavior === 'discard' || options.ifIdle?.behavior === 'discard') await this.#settle([])
  }

  /** A turn of its own, after what is active. */
  async queue(message: MessageInput): Promise<void> {
    await this.agent.queueMessage({ message, ...this.#scope })
    await this.#readQueue()
  }

  async cancelQueued(signalIds: string[]): Promise<void> {
    await this.agent.cancelQueued({ ...this.#scope, signalIds })
    await this.#readQueue()
  }

  async reorderQueued(signalIds: string[]): Promise<void> {
    await this.agent.reorderQueued({ ...this.#scope, signalIds })
    await this.#readQueue()
  }

  approve(toolCallId: string): Promise<void> {
    return this.#decide(toolCallId, { approved: true })
  }

  decline(toolCallId: string, reason?: string): Promise<void> {
    return this.#decide(toolCallId, { approved: false, ...(reason === undefined ? {} : { reason }) })
  }

  async resume(toolCallId: string, resumeData: JSONValue): Promise<void> {
    await this.#answer(toolCallId, () => this.agent.sendStreamResume({ ...this.#scope, toolCallId, resumeData }))
  }

  async abort(options: { clearPendingSignals?: boolean } = {}): Promise<boolean> {
    const aborted = await this.agent.abortThread({ ...this.#scope, ...options })
    if (options.clearPendingSignals) await this.#readQueue()
    return aborted
  }

  /** Shows older messages, a page at a time, as long as `hasOlder`. */
  async loadOlder(): Promise<void> {
    const { threadId, resourceId } = this.#scope
    await this.#older.load(this.agent.memory(resourceId === undefined ? {} : { resourceId }), threadId, () => this.#state.messages)
    this.#show({})
  }

  async #decide(toolCallId: string, { approved, reason }: { approved: boolean; reason?: string }): Promise<void> {
    const why = reason === undefined ? {} : { reason }
    await this.#answer(toolCallId, () => this.agent.sendToolApproval({ ...this.#scope, toolCallId, approved, ...(reason === undefined ? {} : { declineContext: why }) }), { approved, ...why })
  }

  /** A call that was answered here, or before by somebody else, waits no longer. */
  async #answer(toolCallId: string, answer: () => Promise<unknown>, approval?: { approved: boolean; reason?: string }): Promise<void> {
    const waiting = this.#feed.view.approvals.find((call) => call.toolCallId === toolCallId)
    const answered = (told?: typeof approval) => {
      this.#feed.change((view) => (waiting && view.approvals.includes(waiting) ? withDecision(view, toolCallId, told) : view))
      this.#show({})
    }
    try {
      await answer()
    } catch (error) {
      if (isHeedError(error) && error.code === 'run_not_suspended') answered()
      throw error
    }
    answered(approval)
  }

  /** A subscription that goes on where it was may be told nothing for long; one that begins anew is told all. */
  #connected(): void {
    if (this.#state.connection === 'lost' && this.#state.connectionError === null) this.#show({ connection: 'live' })
  }

  #hear(chunk: Chunk): void {
    if (chunk.type === 'data-inbox' && 'data' in chunk) {
      const { pending, unread } = chunk.data as { pending: number; unread: number }
      return this.#show({ inbox: { pending, unread } })
    }
    if (chunk.type === 'data-thread-snapshot') this.#older.keep(olderThan(this.#feed.view, this.#state.messages))
    this.#show({ connection: 'live', connectionError: null })
    if (ends.has(chunk.type)) void this.#readQueue()
  }

  /** What waits is asked for where it may have changed; a display that can't know it shows the last it knew. */
  async #readQueue(): Promise<void> {
    const asked = ++this.#asked
    try {
      const queued = await this.agent.listQueued(this.#scope)
      if (asked !== this.#asked) return
      this.#show({ queued })
      await this.#settle(queued)
    } catch {
      // A thread that doesn't exist yet has no queue, and older servers have none at all.
    }
  }

  /** Takes back what was sent from here and will never be part of the thread. */
  async #settle(queued: readonly QueuedOverWire[]): Promise<void> {
    const waiting = new Set(queued.map(({ id }) => id))
    const ids = [...this.#sent].flatMap(([id, { isAccepted }]) => (isAccepted && !waiting.has(id) ? [id] : []))
    for (const id of await givenUp(this.agent, this.#scope, ids)) this.#sent.delete(id)
    this.#show({})
  }

  #show(change: Partial<WatchedState>): void {
    const { view } = this.#feed
    const known = new Set(view.messages.map(({ id }) => id))
    for (const id of this.#sent.keys()) if (known.has(id)) this.#sent.delete(id)
    const older = this.#older.messages
    const messages = older.length === 0 && this.#sent.size === 0 ? view.messages : [...older, ...view.messages, ...Array.from(this.#sent.values(), ({ message }) => message)]
    this.#state = { ...this.#state, ...view, ...change, messages, hasOlder: this.#older.hasMore(view) }
    for (const listener of this.#listeners) listener()
  }
}
