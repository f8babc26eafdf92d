import type { UIMessage, UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { AgentClient } from '../agent.ts'
import { ThreadFeed } from '../view/thread-feed.ts'
import { isCall, olderThan, type ThreadView } from '../view/thread-view.ts'
import type { ThreadScope } from '../connection.ts'
import { AnswerStream, type AnswerPage, type AnswerTarget } from './answer-stream.ts'
import { answeredCalls, chatMessages, openQuestions } from './conversion.ts'

type SetMessages = (update: (current: readonly UIMessage[]) => readonly UIMessage[]) => void

/** Chunks after which a sent message may have become undeliverable. */
const runEnds: ReadonlySet<string> = new Set(['finish', 'abort', 'error', 'data-thread-snapshot'])

/**
 * One thread on one page, with one subscription for the streams of its answers and for its followers. While a stream writes an answer,
 * followers are not updated.
 */
export class ChatPage implements AnswerPage {
  readonly feed: ThreadFeed
  /** How often the page has reconnected to a stream. */
  reconnects = 0
  readonly scope: ThreadScope
  readonly #answers = new Set<AnswerStream>()
  readonly #followers = new Set<SetMessages>()
  /** Ids of messages that this page sent and that have no echo yet. */
  readonly #unconfirmed = new Set<string>()
  /** Messages that could not be sent, by id, with the reason. */
  readonly #unsent: ReadonlyMap<string, string>
  /** The number of streams that are open or opening. */
  #streams = 0
  #stop: (() => void) | undefined
  readonly #onIdle: () => void

  /** `onIdle` is called when there are no streams and no followers. */
  constructor(agent: AgentClient, scope: ThreadScope, unsent: ReadonlyMap<string, string>, onIdle: () => void) {
    this.feed = new ThreadFeed(agent, scope)
    this.scope = scope
    this.#unsent = unsent
    this.#onIdle = onIdle
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0
  }

  awaits(messageId: string): boolean {
    for (const { from } of this.#answers) if (from === messageId) return true
    return false
  }

  /** Opens a stream for an answer, after the subscription has begun. */
  async open(target: AnswerTarget, abortSignal?: AbortSignal): Promise<AnswerStream> {
    this.#streams++
    this.#listen()
    try {
      await untilAborted(this.feed.ready, abortSignal)
    } catch (error) {
      this.#onStreamClosed()
      throw error
    }
    const answer = new AnswerStream(target, this, () => {
      this.#answers.delete(answer)
      this.#onStreamClosed()
    })
    this.#answers.add(answer)
    return answer
  }

  /** The server has stored the message of this answer. */
  onAccepted(answer: AnswerStream, { isDuplicate }: { isDuplicate: boolean }): void {
    const { from } = answer
    if (from === undefined || answer.isBegun) return
    if (this.feed.view.messages.some(({ id }) => id === from)) return answer.replay(this.feed.view)
    this.#unconfirmed.add(from)
    if (isDuplicate) void this.#checkDuplicate(answer, from)
  }

  /** `setMessages` gets a function from the messages of the page to those of the thread. */
  follow(setMessages: SetMessages): () => void {
    this.#followers.add(setMessages)
    this.#listen()
    this.#show()
    return () => {
      this.#followers.delete(setMessages)
      this.#stopIfUnused()
    }
  }

  #listen(): void {
    this.#stop ??= this.feed.listen({
      onChunk: (chunk, view, before) => this.#receive(chunk, view, before),
      onLost: (error) => {
        if (error !== undefined) for (const answer of this.#answers) answer.fail(error)
      },
    })
  }

  #onStreamClosed(): void {
    this.#streams--
    // After the page has read the last chunks of the stream.
    if (this.#streams === 0) setTimeout(() => this.#show(), 0)
    this.#stopIfUnused()
  }

  #stopIfUnused(): void {
    if (this.#streams > 0 || this.#followers.size > 0) return
    this.#stop?.()
    this.#stop = undefined
    this.#unconfirmed.clear()
    this.#onIdle()
  }

  #receive(chunk: Chunk, view: ThreadView, before: ThreadView): void {
    for (const answer of this.#answers) answer.receive(chunk, view, before)
    if (runEnds.has(chunk.type) && this.#unconfirmed.size > 0) void this.#finishUndeliverable()
    this.#show()
  }

  /** Ends the streams of messages that will never be answered. */
  async #finishUndeliverable(): Promise<void> {
    for (const { id } of this.feed.view.messages) this.#unconfirmed.delete(id)
    for (const id of await this.feed.findUndeliverable([...this.#unconfirmed])) this.#finish(id)
    this.#show()
  }

  /** The thread already had the message, but the view doesn't: the message is older than the view, or its echo is still to come. */
  async #checkDuplicate(answer: AnswerStream, from: string): Promise<void> {
    const oldest = this.feed.view.messages[0]?.metadata?.createdAt
    try {
      const { state, acceptedAt } = await this.feed.agent.explain({ ...this.scope, signalId: from })
      const isOlder = state === 'consumed' && oldest !== undefined && new Date(acceptedAt) < new Date(oldest)
      if (!answer.isBegun && (isOlder || state === 'cancelled' || state === 'rejected')) this.#finish(from)
    } catch {
      // It is checked again when a run ends.
    }
  }

  #finish(id: string): void {
    this.#unconfirmed.delete(id)
    for (const answer of this.#answers) if (answer.from === id && !answer.isBegun) answer.finish()
  }

  /** Streams show the thread: one writes, or all are about to. */
  get #isStreaming(): boolean {
    if (this.#streams === 0) return false
    const answers = [...this.#answers]
    return !answers.some(({ isDelegated }) => isDelegated) || answers.some(({ isBegun, isDelegated }) => isBegun && !isDelegated)
  }

  #show(): void {
    if (this.#isStreaming || !this.feed.isReady) return
    for (const setMessages of this.#followers) setMessages((current) => this.#merge(current))
  }

  /** The messages to display: those of the view, with older ones and those that are not confirmed. */
  #merge(current: readonly UIMessage[]): readonly UIMessage[] {
    const { view } = this.feed
    const messages = chatMessages(view)
    const ids = new Set(messages.map(({ id }) => id))
    const older = olderThan(view, current)
    const isSent = ({ id }: UIMessage) => this.#unconfirmed.has(id) || this.#unsent.has(id) || this.awaits(id)
    const sent = current.filter((message) => isSent(message) && !ids.has(message.id)).map((message) => this.#marked(message))
    // A view that began during a run is incomplete until the run has begun a message: until then no answer is removed.
    const isUnknown = (message: UIMessage) => message.role === 'assistant' && !ids.has(message.id) && !older.includes(message)
    if (view.status === 'running' && view.writing === null && current.some(isUnknown)) return current
    return [...older, ...messages.map((message) => withAnswers(message, current)), ...sent]
  }

  /** A message that could not be sent has the reason in its metadata. */
  #marked(message: UIMessage): UIMessage {
    const sendError = this.#unsent.get(message.id)
    const { sendError: shown, ...metadata } = message.metadata ?? {}
    if (sendError === shown) return message
    return { ...message, metadata: sendError === undefined ? metadata : { ...metadata, sendError } }
  }
}

/** Keeps answers of the user that the page has not sent yet. */
function withAnswers(message: UIMessage, current: readonly UIMessage[]): UIMessage {
  const questions = openQuestions(message)
  const needsAnswer = (part: UIPart): part is UIToolPart => {
    return 'toolCallId' in part && (part.state === 'approval-requested' || questions.has(part.toolCallId))
  }
  if (!message.parts.some(needsAnswer)) return message
  const shown = current.find(({ id }) => id === message.id)
  const answered = shown ? answeredCalls(shown) : new Map()
  const parts = message.parts.map((part) => {
    if (!needsAnswer(part) || !answered.has(part.toolCallId)) return part
    return shown?.parts.find((own) => isCall(own, part.toolCallId)) ?? part
  })
  return { ...message, parts }
}

async function untilAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return work
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
