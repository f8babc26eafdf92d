import { checkNames } from '../../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import { isURLText, readFileData } from '../../message/file-data.ts'
import type { UIMessage, UIPart } from '../../message/ui/ui-message.ts'
import type { Chunk, WatchEvent } from '../../message/chunk.ts'
import type { MessageInput, MessageInputObject, SignalContents } from '../../signals/signal.ts'
import type { AgentClient, DecidedCall, QueuedOverWire, SendTarget } from '../agent.ts'
import type { MemoryClient } from '../memory.ts'
import { randomKey, type ThreadScope } from '../connection.ts'
import { checkBranches, checkPage, scopeFields } from '../fields.ts'
import { emptyView, olderThan, withDecision, type ThreadView, type WaitingApproval } from './thread-view.ts'
import { ThreadFeed } from './thread-feed.ts'

/** The state of a thread for a display: its view, its queue and its connection. */
export interface WatchedState extends ThreadView {
  /** `connecting` until the first chunk, `lost` while the connection is opened again. */
  connection: 'connecting' | 'live' | 'lost'
  /** Why the server rejects the subscription. It is attempted again from time to time, and after a send. */
  connectionError: string | null
  /** The pending signals, by `kind`: those that enter the active run (`enter`), then the queue (`turn`). None of them is in `messages`. */
  queued: readonly QueuedOverWire[]
  /** Numbers of notifications: not yet delivered, and not yet seen. Null until the server sends them, which older servers don't. */
  inbox: { pending: number; unread: number } | null
  /** What happened to watches of the thread while this display was connected: the last 100 events, oldest first. */
  watches: readonly WatchEvent[]
  /** Why the last send failed, until the next one, or until that message is sent after all. */
  sendError: string | null
}

type SendChoice = Pick<SendTarget, 'ifActive' | 'ifIdle'>

/** A message that was sent by this client and has no echo yet. */
interface SentMessage {
  readonly id: string
  readonly input: MessageInputObject
  /** Where it goes: into the queue, or to the thread with these options. */
  readonly to: 'queue' | SendChoice
  /** As it is shown. A queued message is only shown if it could not be sent. */
  message: UIMessage
  /** The server has stored it. */
  isAccepted: boolean
  /** It could not be sent, and can be sent again. */
  hasFailed: boolean
}

/** How many events of watches are kept. */
const keptEvents = 100

/** Chunks after which the queue may have changed. */
const queueChanges: ReadonlySet<string> = new Set(['start', 'finish', 'abort', 'error', 'data-thread-snapshot'])

/**
 * The state of a thread for a display of any framework: `subscribe` and `getSnapshot` fit React's `useSyncExternalStore`. It is
 * subscribed to the thread while it has listeners.
 */
export class WatchedThread {
  readonly #feed: ThreadFeed
  readonly #scope: ThreadScope
  readonly #listeners = new Set<() => void>()
  #state: WatchedState = {
    ...emptyView, connection: 'connecting', connectionError: null, queued: [], inbox: null, watches: [], sendError: null,
  }
  readonly #sent = new Map<string, SentMessage>()
  readonly #older = new OlderMessages()
  /** The pending signals, as they were read last. */
  #queued: readonly QueuedOverWire[] = []
  /** The number of requests for the queue: only the response of the last one is used. */
  #queueReads = 0
  #stop: (() => void) | undefined
  /** Ends the frame for which chunks were shown; later ones are shown with the next. */
  #endFrame: (() => void) | undefined
  #isShownLater = false

  constructor(agent: AgentClient, scope: ThreadScope) {
    checkNames('WatchedThread', scope, scopeFields)
    checkPage('WatchedThread', { agent, threadId: scope.threadId, resourceId: scope.resourceId })
    this.#feed = new ThreadFeed(agent, scope, { inbox: true, watches: true })
    this.#scope = scope
  }

  /** The client for requests. A new one for the same server is used from the next request on. */
  get agent(): AgentClient {
    return this.#feed.agent
  }

  set agent(agent: AgentClient) {
    this.#feed.agent = agent
  }

  getSnapshot = (): WatchedState => this.#state

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    this.#stop ??= this.#feed.listen({
      onChunk: (chunk) => this.#receive(chunk),
      onConnect: () => this.#onConnect(),
      onLost: (error) => this.#show({ connection: 'lost', ...(error === undefined ? {} : { connectionError: describe(error) }) }),
    })
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#stop?.()
      this.#stop = undefined
      this.#endFrame?.()
      this.#endFrame = undefined
      if (this.#isShownLater) this.#show({})
    }
  }

  /**
   * Shows the message at once. If it is rejected, removes it; if the server can't be reached, keeps it with the reason in
   * `metadata.sendError`, for `retry` or `discard`. The reason is also in `sendError`, so that the promise need not be handled.
   */
  send(message: MessageInput, options: SendChoice = {}): Promise<void> {
    checkNames('send()', options, ['ifActive', 'ifIdle'])
    checkBranches(options)
    return handled(this.#deliver(this.#add(message, options)))
  }

  /** The message starts a run of its own, after the active one. A failure is handled as that of `send`. */
  queue(message: MessageInput): Promise<void> {
    return handled(this.#deliver(this.#add(message, 'queue')))
  }

  /** Sends a message again that could not be sent. The server recognizes one that it has already. */
  retry(id: string): Promise<void> {
    return handled(this.#deliver(this.#failed(id)))
  }

  /** Removes a message that could not be sent. */
  discard(id: string): void {
    this.#sent.delete(this.#failed(id).id)
    this.#show({ sendError: null })
  }

  #add(message: MessageInput, to: SentMessage['to']): SentMessage {
    const { id = randomKey(), ...rest } = typeof message === 'object' && !Array.isArray(message) ? message : { contents: message }
    const shown = optimisticMessage(id, message)
    const sent: SentMessage = { id, input: { ...rest, id }, to, message: shown, isAccepted: false, hasFailed: false }
    this.#sent.set(id, sent)
    return sent
  }

  #failed(id: string): SentMessage {
    const sent = this.#sent.get(id)
    if (sent?.hasFailed) return sent
    throw new HeedError('message_not_found', `There is no message '${id}' that could not be sent.`, { details: { id } })
  }

  async #deliver(sent: SentMessage): Promise<void> {
    const { id, input, to, message } = sent
    sent.hasFailed = false
    sent.message = { ...message, metadata: { optimistic: true } }
    this.#show({ sendError: null })
    try {
      if (to === 'queue') await this.agent.queueMessage({ message: input, ...this.#scope })
      else await this.agent.sendMessage({ message: input, ...this.#scope, ...to })
    } catch (error) {
      // The response was lost, and the thread has the message.
      if (this.#feed.view.messages.some((known) => known.id === id)) return
      this.#fail(sent, error)
      throw error
    }
    sent.isAccepted = true
    this.#feed.reconnect()
    if (to === 'queue') {
      if (this.#sent.get(id) === sent) this.#sent.delete(id)
      await this.#readQueue()
    } else if (to.ifActive?.behavior === 'discard' || to.ifIdle?.behavior === 'discard') await this.#removeUndeliverable([])
  }

  #fail(sent: SentMessage, error: unknown): void {
    const sendError = describe(error)
    // The same id may have been sent again meanwhile.
    const isShown = this.#sent.get(sent.id) === sent
    if (isShown && isRejected(error)) this.#sent.delete(sent.id)
    else if (isShown) {
      sent.hasFailed = true
      sent.message = { ...sent.message, metadata: { optimistic: true, sendError } }
    }
    this.#show({ sendError })
  }

  async cancelQueued(signalIds: string[]): Promise<void> {
    await this.agent.cancelQueued({ ...this.#scope, signalIds })
    await this.#readQueue()
  }

  async reorderQueued(signalIds: string[]): Promise<void> {
    await this.agent.reorderQueued({ ...this.#scope, signalIds })
    await this.#readQueue()
  }

  /** `id`: the `approvalId` of one of the `approvals`, or its `toolCallId`. The decision is about the request that is shown. */
  approve(id: string): Promise<void> {
    return this.#decide(id, { approved: true })
  }

  decline(id: string, reason?: string): Promise<void> {
    return this.#decide(id, { approved: false, ...(reason === undefined ? {} : { reason }) })
  }

  async resume(id: string, resumeData: JSONValue): Promise<void> {
    const call = this.#waiting(id)
    await this.#sendDecision(call, () => this.agent.sendStreamResume({ ...this.#scope, ...decidedCall(call, id), resumeData }))
  }

  async abort(options: { clearPendingSignals?: boolean } = {}): Promise<boolean> {
    checkNames('abort()', options, ['clearPendingSignals'])
    const aborted = await this.agent.abortThread({ ...this.#scope, ...options })
    if (options.clearPendingSignals) await this.#readQueue()
    return aborted
  }

  /** Loads the next page of older messages. `hasOlder`: there is one. */
  async loadOlder(): Promise<void> {
    const { threadId, resourceId } = this.#scope
    await this.#older.load(this.agent.memory(resourceId === undefined ? {} : { resourceId }), threadId, () => this.#state.messages)
    this.#show({})
  }

  #waiting(id: string): WaitingApproval | undefined {
    const { approvals } = this.#feed.view
    return approvals.find(({ approvalId }) => approvalId === id) ?? approvals.find(({ toolCallId }) => toolCallId === id)
  }

  async #decide(id: string, { approved, reason }: { approved: boolean; reason?: string }): Promise<void> {
    const call = this.#waiting(id)
    const given = reason === undefined ? {} : { reason }
    const approval = { ...this.#scope, ...decidedCall(call, id), approved, ...(reason === undefined ? {} : { declineContext: given }) }
    await this.#sendDecision(call, () => this.agent.sendToolApproval(approval), { approved, ...given })
  }

  /** Removes the call from `approvals` when it is decided, here or by another client. */
  async #sendDecision(
    call: WaitingApproval | undefined, send: () => Promise<unknown>, approval?: { approved: boolean; reason?: string },
  ): Promise<void> {
    const show = (decision?: typeof approval) => {
      this.#feed.update((view) => (call && view.approvals.includes(call) ? withDecision(view, call.toolCallId, decision) : view))
      this.#show({})
    }
    try {
      await send()
    } catch (error) {
      if (isHeedError(error) && error.code === 'run_not_suspended') show()
      throw error
    }
    show(approval)
  }

  /** A subscription that continues at its cursor may get no chunk for long; one that begins anew gets a snapshot. */
  #onConnect(): void {
    if (this.#state.connection === 'lost' && this.#state.connectionError === null) this.#show({ connection: 'live' })
  }

  #receive(chunk: Chunk): void {
    if (chunk.type === 'data-inbox' && 'data' in chunk) {
      const { pending, unread } = chunk.data as { pending: number; unread: number }
      return this.#show({ inbox: { pending, unread } })
    }
    if (chunk.type === 'data-watch' && 'data' in chunk)
      return this.#show({ watches: [...this.#state.watches.slice(1 - keptEvents), chunk.data as WatchEvent] })
    if (chunk.type === 'data-thread-snapshot') this.#older.keep(olderThan(this.#feed.view, this.#state.messages))
    this.#showChunk()
    if (queueChanges.has(chunk.type)) void this.#readQueue()
  }

  /** Shows a chunk at once, and those that follow in the same frame together: a fast answer has hundreds of them in a second. */
  #showChunk(): void {
    if (this.#endFrame && this.#state.connection === 'live') {
      this.#isShownLater = true
      return
    }
    this.#endFrame?.()
    this.#show({ connection: 'live', connectionError: null })
    this.#endFrame = onNextFrame(() => {
      this.#endFrame = undefined
      if (this.#isShownLater) this.#showChunk()
    })
  }

  /** Reads the queue. If that fails, the last known queue stays. */
  async #readQueue(): Promise<void> {
    const read = ++this.#queueReads
    try {
      const queued = await this.agent.listQueued(this.#scope)
      if (read !== this.#queueReads) return
      this.#show({ queued })
      await this.#removeUndeliverable(queued)
    } catch {
      // A thread that does not exist yet has no queue, and older servers have no route for it.
    }
  }

  /** Removes messages that were sent by this client and will never enter the thread. */
  async #removeUndeliverable(queued: readonly QueuedOverWire[]): Promise<void> {
    const pending = new Set(queued.map(({ id }) => id))
    const ids = [...this.#sent].flatMap(([id, { isAccepted }]) => (isAccepted && !pending.has(id) ? [id] : []))
    for (const id of await this.#feed.findUndeliverable(ids)) this.#sent.delete(id)
    this.#show({})
  }

  #show(change: Partial<WatchedState>): void {
    this.#isShownLater = false
    const { view } = this.#feed
    const known = new Set(view.messages.map(({ id }) => id))
    let { sendError = this.#state.sendError } = change
    for (const [id, { hasFailed }] of this.#sent) {
      if (!known.has(id)) continue
      this.#sent.delete(id)
      // Its response was lost: the thread has it.
      if (hasFailed) sendError = null
    }
    this.#queued = change.queued ?? this.#queued
    const queued = this.#queued.some(({ id }) => known.has(id)) ? this.#queued.filter(({ id }) => !known.has(id)) : this.#queued
    const pending = new Set(queued.map(({ id }) => id))
    const sent = [...this.#sent.values()].filter(({ id, to, hasFailed }) => !pending.has(id) && (to !== 'queue' || hasFailed))
    const older = this.#older.messages
    const shown = sent.map(({ message }) => message)
    const messages = older.length === 0 && shown.length === 0 ? view.messages : [...older, ...view.messages, ...shown]
    this.#state = { ...this.#state, ...view, ...change, queued, sendError, messages, hasOlder: this.#older.hasMore(view) }
    for (const listener of this.#listeners) listener()
  }
}

/** How long a frame lasts where nothing is drawn: outside of a browser, and in a page that is hidden. */
const frameMs = 16
const hiddenFrameMs = 250

/** Calls `run` with the next frame of the page. Returns how to cancel that. */
function onNextFrame(run: () => void): () => void {
  const { requestAnimationFrame, cancelAnimationFrame } = globalThis as Partial<AnimationFrames>
  const timer = setTimeout(() => end(), requestAnimationFrame ? hiddenFrameMs : frameMs)
  const frame = requestAnimationFrame?.(() => end())
  const cancel = () => {
    clearTimeout(timer)
    if (frame !== undefined) cancelAnimationFrame?.(frame)
  }
  const end = () => {
    cancel()
    run()
  }
  return cancel
}

interface AnimationFrames {
  requestAnimationFrame: (callback: () => void) => number
  cancelAnimationFrame: (frame: number) => void
}

/** A promise whose rejection need not be handled: the state shows the failure. */
function handled(work: Promise<void>): Promise<void> {
  work.catch(() => {})
  return work
}

/** The server will not accept this input. Without a response, or with one about the caller or the load, it may be sent again. */
export function isRejected(error: unknown): boolean {
  return isHeedError(error) && !error.retryable && error.code !== 'unreachable' && error.code !== 'unauthorized'
}

/** How a decision names its request: as it is shown. Older servers know calls only. */
export function decidedCall(call: WaitingApproval | undefined, toolCallId: string): DecidedCall {
  const { approvalId, digest } = call ?? {}
  return approvalId !== undefined && digest !== undefined ? { approvalId, digest } : { toolCallId: call?.toolCallId ?? toolCallId }
}

/** The message as it will look when the server has it. `metadata.optimistic` marks it. */
function optimisticMessage(id: string, message: MessageInput): UIMessage {
  const contents: SignalContents = typeof message === 'object' && !Array.isArray(message) ? message.contents : message
  const parts = typeof contents === 'string' ? [{ type: 'text' as const, text: contents }] : contents.flatMap(toUIPart)
  return { id, role: 'user', parts, metadata: { optimistic: true } }
}

function toUIPart(part: Exclude<SignalContents, string>[number]): UIPart[] {
  if (part.type === 'text') return [{ type: 'text', text: part.text }]
  const read = readFileData(part.type === 'file' ? part.data : part.image)
  // Invalid data is not shown: the server rejects it with a reason.
  if (typeof read === 'string') return []
  const { data } = read
  const mediaType = part.mediaType ?? 'image/*'
  const url = isURLText(data) ? data : `data:${mediaType};base64,${data}`
  return [{ type: 'file', url, mediaType, ...(part.type === 'file' && part.filename !== undefined ? { filename: part.filename } : {}) }]
}

/** Older messages of a thread, page by page. */
class OlderMessages {
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
