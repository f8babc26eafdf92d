import type { UIMessage, UIPart, UIToolPart } from '../../message/ui/ui-message.ts'
import type { Chunk } from '../../run/chunk.ts'
import type { AgentClient, ThreadScope } from '../agent.ts'
import { givenUp } from '../view/given-up.ts'
import { olderThan } from '../view/older.ts'
import { isCall } from '../view/parts.ts'
import { ThreadFeed } from '../view/thread-feed.ts'
import type { ThreadView } from '../view/thread-view.ts'
import { Answer, type AnswerPage, type Asked } from './answer.ts'
import { answeredIn, chatMessages, questionsIn } from './chat-message.ts'

type SetMessages = (update: (current: readonly UIMessage[]) => readonly UIMessage[]) => void

const ends: ReadonlySet<string> = new Set(['finish', 'abort', 'error', 'data-thread-snapshot'])

/**
 * One thread on one page, through one subscription: the streams with which the page reads answers, and those who follow the thread. While a
 * stream is open, it alone writes.
 */
export class ChatPage implements AnswerPage {
  readonly feed: ThreadFeed
  /** How often the page took an answer up again. */
  resumed = 0
  readonly scope: ThreadScope
  readonly #answers = new Set<Answer>()
  readonly #followers = new Set<SetMessages>()
  /** Sent from here, and not heard of yet. */
  readonly #unheard = new Set<string>()
  /** Streams that are open, or about to be. */
  #streams = 0
  #leave: (() => void) | undefined
  readonly #onIdle: () => void

  /** `onIdle`: nobody has anything to do with the thread any more. */
  constructor(agent: AgentClient, scope: ThreadScope, onIdle: () => void) {
    this.feed = new ThreadFeed(agent, scope)
    this.scope = scope
    this.#onIdle = onIdle
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0
  }

  awaits(messageId: string): boolean {
    for (const { from } of this.#answers) if (from === messageId) return true
    return false
  }

  /** A stream for an answer, once the server says what happens. */
  async open(asked: Asked, abortSignal?: AbortSignal): Promise<Answer> {
    this.#streams++
    this.#listen()
    try {
      await orAborted(this.feed.begun, abortSignal)
    } catch (error) {
      this.#closed()
      throw error
    }
    const answer = new Answer(asked, this, () => {
      this.#answers.delete(answer)
      this.#closed()
    })
    this.#answers.add(answer)
    return answer
  }

  /** The server has the message that this answers. */
  accepted(answer: Answer, message: { isRepeated: boolean }): void {
    const { from } = answer
    if (from === undefined || answer.isBegun) return
    if (this.feed.view.messages.some(({ id }) => id === from)) return answer.repeat(this.feed.view)
    this.#unheard.add(from)
    if (message.isRepeated) void this.#repeated(answer, from)
  }

  /** `setMessages` is given what makes the messages of what the page has. */
  follow(setMessages: SetMessages): () => void {
    this.#followers.add(setMessages)
    this.#listen()
    this.#show()
    return () => {
      this.#followers.delete(setMessages)
      this.#rest()
    }
  }

  #listen(): void {
    this.#leave ??= this.feed.listen({
      heard: (chunk, view, before) => this.#hear(chunk, view, before),
      lost: (error) => {
        if (error !== undefined) for (const answer of this.#answers) answer.fail(error)
      },
    })
  }

  #closed(): void {
    this.#streams--
    // After the page has read what was written last.
    if (this.#streams === 0) setTimeout(() => this.#show(), 0)
    this.#rest()
  }

  #rest(): void {
    if (this.#streams > 0 || this.#followers.size > 0) return
    this.#leave?.()
    this.#leave = undefined
    this.#unheard.clear()
    this.#onIdle()
  }

  #hear(chunk: Chunk, view: ThreadView, before: ThreadView): void {
    for (const answer of this.#answers) answer.hear(chunk, view, before)
    if (ends.has(chunk.type) && this.#unheard.size > 0) void this.#settle()
    this.#show()
  }

  /** What was sent from here and will never be answered holds nobody up. */
  async #settle(): Promise<void> {
    for (const { id } of this.feed.view.messages) this.#unheard.delete(id)
    for (const id of await givenUp(this.feed.agent, this.scope, [...this.#unheard])) this.#forget(id)
    this.#show()
  }

  /** The thread had the message before, and the view does not: it is older than that, or about to be heard of. */
  async #repeated(answer: Answer, from: string): Promise<void> {
    const oldest = this.feed.view.messages[0]?.metadata?.createdAt
    try {
      const { state, acceptedAt } = await this.feed.agent.explain({ ...this.scope, signalId: from })
      const isOlder = state === 'consumed' && oldest !== undefined && new Date(acceptedAt) < new Date(oldest)
      if (!answer.isBegun && (isOlder || state === 'cancelled' || state === 'rejected')) this.#forget(from)
    } catch {
      // It is asked for again when a run ends.
    }
  }

  #forget(id: string): void {
    this.#unheard.delete(id)
    for (const answer of this.#answers) if (answer.from === id && !answer.isBegun) answer.finish()
  }

  #show(): void {
    if (this.#streams > 0 || !this.feed.hasBegun) return
    for (const setMessages of this.#followers) setMessages((current) => this.#merged(current))
  }

  /** What the page is to show: the thread, with what is older than the view of it and what is known here alone. */
  #merged(current: readonly UIMessage[]): readonly UIMessage[] {
    const { view } = this.feed
    const messages = chatMessages(view)
    const ids = new Set(messages.map(({ id }) => id))
    const older = olderThan(view, current)
    const unheard = current.filter(({ id }) => this.#unheard.has(id) && !ids.has(id))
    // A view that began amid a run is whole only when it has heard all that the run said: until then it takes no answer away.
    if (view.status === 'running' && current.some((message) => message.role === 'assistant' && !ids.has(message.id) && !older.includes(message))) return current
    return [...older, ...messages.map((message) => withAnswers(message, current)), ...unheard]
  }
}

/** What the user answered and the page has not sent yet stays answered. */
function withAnswers(message: UIMessage, current: readonly UIMessage[]): UIMessage {
  const asked = questionsIn(message)
  const waits = (part: UIPart): part is UIToolPart => 'toolCallId' in part && (part.state === 'approval-requested' || asked.has(part.toolCallId))
  if (!message.parts.some(waits)) return message
  const shown = current.find(({ id }) => id === message.id)
  const answered = shown ? answeredIn(shown) : new Map()
  return { ...message, parts: message.parts.map((part) => (waits(part) && answered.has(part.toolCallId) ? (shown?.parts.find((mine) => isCall(mine, part.toolCallId)) ?? part) : part)) }
}

async function orAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
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
