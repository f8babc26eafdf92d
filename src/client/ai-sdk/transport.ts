import { HeedError } from '../../errors.ts'
import type { Chunk } from '../../run/chunk.ts'
import type { UIMessage } from '../../message/ui-message.ts'
import type { SignalContents } from '../../signals/signal.ts'
import type { ThreadSnapshot } from '../../thread/subscription.ts'
import type { AgentClient, ThreadScope } from '../agent.ts'
import type { ThreadSubscription } from '../thread-subscription.ts'
import { reduceChunk } from '../view/reduce.ts'
import { emptyView } from '../view/thread-view.ts'
import { WatchedThread } from '../view/watched-thread.ts'
import { ChatPage } from './chat-page.ts'
import { partsShown, ShownAnswer } from './shown-answer.ts'
import { chunksOfPart, uiChunks, type UIChunk } from './ui-chunks.ts'

export interface HeedChatTransportOptions {
  agent: AgentClient
  /** Whose threads these are. May be left out where the server knows it from who asks. */
  resourceId?: string
}

/** A message as `useChat` passes it on. */
interface ChatMessage {
  id: string
  role: 'system' | 'user' | 'assistant'
  parts: ReadonlyArray<{ type: string; [field: string]: unknown }>
}

interface SendOptions {
  trigger: 'submit-message' | 'regenerate-message'
  chatId: string
  messages: ChatMessage[]
  abortSignal?: AbortSignal | undefined
  /** `{ queue: true }`: a turn of its own after what is active, in place of a word in it. */
  body?: object | undefined
}

/**
 * Lets `useChat` of the AI SDK live on a thread: the chat's id is the thread's. A message sent while the agent works steers it; a
 * page that is loaded again goes on where the run is; approvals given in the page reach the call that waits.
 */
export class HeedChatTransport {
  readonly #agent: AgentClient
  readonly #resourceId: string | undefined
  /** The threads that this page reads or follows now. */
  readonly #pages = new Map<string, ChatPage>()
  /** What is replayed is the run from its start. */
  readonly resumeStreamIsReplay = true

  constructor({ agent, resourceId }: HeedChatTransportOptions) {
    this.#agent = agent
    this.#resourceId = resourceId
  }

  async sendMessages({ trigger, chatId, messages, abortSignal, body }: SendOptions): Promise<ReadableStream<UIChunk>> {
    const scope = this.#scope(chatId)
    const last = messages.at(-1)
    if (trigger === 'regenerate-message') throw new HeedError('unsupported_option', 'A thread is not rewritten: send the message again instead of regenerating its answer.')
    if (!last) throw new HeedError('invalid_argument', 'There is no message to send.')
    const { stream, listening } = this.#open(scope, abortSignal, last.role === 'user' ? { from: last.id } : { writing: last })
    if (last.role === 'user') {
      await listening
      const sent = { message: { id: last.id, contents: contentsOf(last) }, ...scope }
      await (isQueued(body) ? this.#agent.queueMessage(sent) : this.#agent.sendMessage(sent))
      return stream
    }
    const decisions = last.parts.filter((part) => part.state === 'approval-responded')
    if (decisions.length === 0) throw new HeedError('invalid_argument', 'The last message is neither a user message nor an answer to a call that waits.')
    await listening
    for (const { toolCallId, approval } of decisions as ReadonlyArray<{ toolCallId?: unknown; approval?: { approved?: boolean; reason?: string } }>) {
      await this.#agent.sendToolApproval({
        ...scope, toolCallId: String(toolCallId), approved: approval?.approved === true, ...(approval?.reason === undefined ? {} : { declineContext: { reason: approval.reason } }),
      })
    }
    return stream
  }

  /** The run that is active or waits, from its start; null when there is none. */
  async reconnectToStream({ chatId }: { chatId: string }): Promise<ReadableStream<UIChunk> | null> {
    const scope = this.#scope(chatId)
    const subscription = await this.#agent.subscribeToThread(scope)
    // Asked while listening: a run that ends after this says so in the stream.
    const run = await this.#agent.activeRun(scope).catch((error: unknown) => {
      if (isAbsent(error)) return null
      subscription.unsubscribe()
      throw error
    })
    if (run) return this.#open(scope, undefined, {}, subscription).stream
    subscription.unsubscribe()
    return null
  }

  /**
   * Shows the thread whenever no stream of this page does: what other tabs send and what wakes the thread, as it is written, and after every
   * answer what history says of it. Answers how to stop that.
   */
  follow<Shown extends { id: string }>(chatId: string, setMessages: (update: (current: Shown[]) => Shown[]) => void): () => void {
    const page = this.#page(chatId)
    const unfollow = page.follow(new WatchedThread(this.#agent, this.#scope(chatId)), (update) => setMessages((current) => [...update(current as unknown as UIMessage[])] as unknown as Shown[]))
    return () => {
      unfollow()
      this.#leave(chatId)
    }
  }

  #page(chatId: string): ChatPage {
    let page = this.#pages.get(chatId)
    if (!page) this.#pages.set(chatId, (page = new ChatPage()))
    return page
  }

  #leave(chatId: string): void {
    if (this.#pages.get(chatId)?.isIdle) this.#pages.delete(chatId)
  }

  #scope(threadId: string): ThreadScope {
    return { threadId, ...(this.#resourceId === undefined ? {} : { resourceId: this.#resourceId }) }
  }

  /**
   * `from`: the message whose answer is wanted. What was said before it was taken is no part of that. `writing`: the message that goes on, as the page
   * has it. `resumed`: the active run as it is told from its start.
   */
  #open(scope: ThreadScope, abortSignal: AbortSignal | undefined, { from, writing }: { from?: string; writing?: ChatMessage }, resumed?: ThreadSubscription): { stream: ReadableStream<UIChunk>; listening: Promise<void> } {
    const ready = Promise.withResolvers<void>()
    ready.promise.catch(() => {})
    const replay = resumed !== undefined
    const subscription = resumed ?? this.#agent.watchThread({ ...scope, snapshot: true })
    const chunks = subscription.chunks({ delayMs: 200 })
    const page = this.#page(scope.threadId)
    const leave = page.begin(from)
    const end = () => {
      leave()
      this.#leave(scope.threadId)
      subscription.unsubscribe()
    }
    abortSignal?.addEventListener('abort', () => {
      void this.#agent.abortThread(scope).catch(() => {})
      end()
    }, { once: true })
    let begun = replay || from === undefined
    let waiting = !replay
    const shown = new ShownAnswer(partsShown(writing?.parts ?? []))
    /** The name that history has for the answer: whoever shows history then shows the same message. */
    let answer = writing?.id
    let runId: string | undefined
    const stream = new ReadableStream<UIChunk>({
      start: (controller) => {
        if (from === undefined && !replay) controller.enqueue({ type: 'start' })
        const tell = (chunks: readonly UIChunk[]) => {
          for (const chunk of chunks) for (const part of shown.tell(chunk)) controller.enqueue(part)
        }
        const named = (messageId: string | undefined) => {
          if (messageId === undefined || answer !== undefined) return
          answer = messageId
          tell([{ type: 'start', messageId }])
        }
        const read = async () => {
          for await (const chunk of chunks) {
            if (waiting) {
              // The snapshot says that the server listens; what it holds is on the page already.
              waiting = false
              ready.resolve()
              if (chunk.type === 'data-thread-snapshot') continue
            }
            if (chunk.type === 'data-thread-snapshot' && 'data' in chunk) {
              // What was missed may have begun the answer, or ended it; what was shown may be said anew.
              const { status, runId: active } = chunk.data as ThreadSnapshot
              const { messages } = reduceChunk(emptyView, chunk)
              begun ||= messages.some(({ id }) => id === from)
              if (!begun) continue
              // A stream takes nothing back; whoever follows the thread shows the rest of it.
              if (!replay && page.isFollowed) {
                page.handOver()
                break
              }
              shown.again()
              const told = answerIn(messages, { from, answer: answer ?? (active === null ? undefined : lastAnswer(messages)), isAnother: (id) => id !== from && page.awaits(id) })
              named(told.messages.find(({ role }) => role === 'assistant')?.id)
              for (const { id, parts } of told.messages) tell(parts.flatMap((part, index) => chunksOfPart(part, `${id}/${index}`)))
              if (told.isCut) break
              if (status === 'running' && (runId ?? active) === active) continue
              tell([{ type: 'finish' }])
              break
            }
            const echoed = echoOf(chunk)
            if (!begun) {
              begun = echoed === from && from !== undefined
              continue
            }
            if (echoed !== undefined && echoed !== from && page.awaits(echoed)) break
            // What the page's own user said is on the page already.
            if (echoed !== undefined) continue
            if ('payload' in chunk) runId = chunk.runId
            if ((chunk.type === 'start' || chunk.type === 'step-start') && 'payload' in chunk) named(chunk.payload.messageId)
            tell(uiChunks(chunk))
            if (chunk.type === 'tool-call-approval') tell([{ type: 'finish-step' }, { type: 'finish' }])
            if (isLast(chunk)) break
          }
        }
        void read().then(
          () => {
            end()
            controller.close()
          },
          (error: unknown) => {
            end()
            ready.reject(error)
            controller.error(error)
          },
        )
      },
      cancel: end,
    })
    return { stream, listening: ready.promise }
  }
}

/** What a snapshot has of an answer: all that was said since the message that it answers, up to the next that another stream of the page answers. */
function answerIn(
  messages: readonly UIMessage[], { from, answer, isAnother }: { from: string | undefined; answer: string | undefined; isAnother: (id: string) => boolean },
): { messages: UIMessage[]; isCut: boolean } {
  const asked = messages.findIndex(({ id }) => id === from)
  const first = asked >= 0 ? asked + 1 : messages.findIndex(({ id }) => id === answer)
  const since = first < 0 ? [] : messages.slice(first)
  const end = since.findIndex(({ id, role }) => role === 'user' && isAnother(id))
  return { messages: (end < 0 ? since : since.slice(0, end)).filter(({ role }) => role !== 'user'), isCut: end >= 0 }
}

function lastAnswer(messages: readonly UIMessage[]): string | undefined {
  const last = messages.at(-1)
  return last?.role === 'assistant' ? last.id : undefined
}

/** The page has what it needs: the run is over, or waits for somebody. */
function isLast({ type }: Chunk): boolean {
  return type === 'finish' || type === 'abort' || type === 'error' || type === 'tool-call-approval'
}

function isQueued(body: object | undefined): boolean {
  return body !== undefined && 'queue' in body && body.queue === true
}

function echoOf(chunk: Chunk): string | undefined {
  return chunk.type === 'data-user-message' && 'data' in chunk ? (chunk.data as { id: string }).id : undefined
}

function contentsOf({ parts }: ChatMessage): SignalContents {
  const contents = parts.flatMap((part): Exclude<SignalContents, string> => {
    if (part.type === 'text') return [{ type: 'text', text: String(part.text) }]
    if (part.type === 'file') return [{ type: 'file', data: String(part.url), mediaType: String(part.mediaType), ...(typeof part.filename === 'string' ? { filename: part.filename } : {}) }]
    return []
  })
  const [only] = contents
  return contents.length === 1 && only?.type === 'text' ? only.text : contents
}

function isAbsent(error: unknown): boolean {
  return error instanceof HeedError && error.code === 'thread_not_found'
}
