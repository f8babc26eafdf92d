import { checkNames } from '../../base/arguments.ts'
import { describe, HeedError, isHeedError } from '../../base/errors.ts'
import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { AgentClient } from '../agent.ts'
import { checkPage } from '../fields.ts'
import { decidedCall, isRejected } from '../view/watched-thread.ts'
import type { AnswerStream, AnswerTarget } from './answer-stream.ts'
import { contentsOf, decisionsIn, metadataOf, openQuestions, type ChatMessage, type UIChunk } from './conversion.ts'
import { ChatPage } from './chat-page.ts'

/** The agent that a chat is with. */
export interface HeedChatTransportOptions {
  agent: AgentClient
  /** The resource of the threads. Optional if the principal has one resource only. */
  resourceId?: string
}

interface SendOptions {
  trigger: 'submit-message' | 'regenerate-message'
  chatId: string
  messages: ChatMessage[]
  abortSignal?: AbortSignal | undefined
  /** `{ queue: true }`: the message starts a run of its own, after the active one, instead of entering that. */
  body?: object | undefined
}

/**
 * Connects `useChat` of the AI SDK to a thread, whose id is that of the chat. A message that is sent during a run enters the run; a page
 * that is reloaded continues at the active run; approvals of the page decide about the calls of a suspended run.
 */
export class HeedChatTransport {
  readonly #agent: AgentClient
  readonly #resourceId: string | undefined
  /** The threads with open streams or followers, by id. */
  readonly #pages = new Map<string, ChatPage>()
  /** Messages that could not be sent, by id, with the reason. `regenerate()` of the chat sends them again. */
  readonly #unsent = new Map<string, string>()
  /** A stream after a reconnect begins with the start of the run. */
  readonly resumeStreamIsReplay = true

  constructor(options: HeedChatTransportOptions) {
    checkNames('HeedChatTransport', options, ['agent', 'resourceId'])
    const { agent, resourceId } = options
    checkPage('HeedChatTransport', { agent, resourceId })
    this.#agent = agent
    this.#resourceId = resourceId
  }

  async sendMessages(options: SendOptions): Promise<ReadableStream<UIChunk>> {
    checkRequest('sendMessages()', options, ['trigger', 'chatId', 'messages', 'messageId', 'abortSignal', 'body'])
    const { trigger, chatId, messages, abortSignal, body } = options
    if (body !== undefined) checkNames('body', body, ['queue'])
    const last = messages.at(-1)
    if (trigger === 'regenerate-message' && !(last && this.#unsent.has(last.id))) {
      throw new HeedError('unsupported_option', 'The answers of a thread can not be regenerated. Send the message again.')
    }
    if (!last) throw new HeedError('invalid_argument', 'There is no message to send.')
    const page = this.#page(chatId)
    const { stream } = await (last.role === 'user'
      ? this.#send(page, last, isQueued(body), abortSignal)
      : this.#decide(page, last, abortSignal))
    return stream
  }

  /** The answer of the active or suspended run, from its start; null if there is none. */
  async reconnectToStream(options: { chatId: string; abortSignal?: AbortSignal | undefined }): Promise<ReadableStream<UIChunk> | null> {
    checkRequest('reconnectToStream()', options, ['chatId', 'abortSignal'])
    const { chatId, abortSignal } = options
    const page = this.#page(chatId)
    const reconnect = ++page.reconnects
    const answer = await this.#open(page, {}, abortSignal, () => page.reconnects === reconnect)
    if (page.feed.view.status !== 'idle') {
      answer.catchUp(page.feed.view)
      return answer.stream
    }
    // Requested while subscribed: if a run has just started, its chunks are still to come.
    const run = await closeOnError(answer, () => this.#agent.activeRun(page.scope).catch(nullIfMissing))
    if (run) return answer.stream
    answer.close()
    return null
  }

  /**
   * Displays the thread while no stream of this page is open: messages of other tabs and runs that other signals started, as they are
   * written, and after every answer its history. Returns how to stop.
   */
  follow<Shown extends { id: string }>(chatId: string, setMessages: (update: (current: Shown[]) => Shown[]) => void): () => void {
    return this.#page(chatId).follow((update) =>
      setMessages((current) => [...update(current as unknown as UIMessage[])] as unknown as Shown[]),
    )
  }

  async #send(page: ChatPage, message: ChatMessage, queued: boolean, abortSignal: AbortSignal | undefined): Promise<AnswerStream> {
    const { id } = message
    this.#unsent.delete(id)
    const unlessSent = (error: unknown) => {
      if (!isRejected(error) && !abortSignal?.aborted) this.#unsent.set(id, describe(error))
      throw error
    }
    const answer = await this.#open(page, { from: id }, abortSignal).catch(unlessSent)
    await closeOnError(answer, async () => {
      const metadata = metadataOf(message)
      const sent = { message: { id, contents: contentsOf(message), ...(metadata && { metadata }) }, ...page.scope }
      const { duplicate = false } = await (queued ? this.#agent.queueMessage(sent) : this.#agent.sendMessage(sent)).catch(unlessSent)
      page.onAccepted(answer, { isDuplicate: duplicate })
    })
    return answer
  }

  /** Sends the page's decisions about the calls of a suspended run. */
  async #decide(page: ChatPage, message: ChatMessage, abortSignal: AbortSignal | undefined): Promise<AnswerStream> {
    const { feed, scope } = page
    const answer = await this.#open(page, { writing: message }, abortSignal)
    await closeOnError(answer, async () => {
      const decisions = decisionsIn(message, feed.view)
      if (decisions.length === 0 && openQuestions(message).size === 0) {
        throw new HeedError('invalid_argument', 'The last message is neither a user message nor a decision about a tool call.')
      }
      // Another client has decided: this page gets the result too.
      if (feed.view.status !== 'suspended') return answer.catchUp(feed.view)
      for (const { toolCallId, waiting, isStale, approval, resumeData } of decisions) {
        if (isStale) continue
        const call = { ...scope, ...decidedCall(waiting, toolCallId) }
        const declineContext = approval?.reason === undefined ? {} : { declineContext: { reason: approval.reason } }
        const sent = approval
          ? this.#agent.sendToolApproval({ ...call, approved: approval.approved, ...declineContext })
          : this.#agent.sendStreamResume({ ...call, resumeData })
        await sent.catch((error: unknown) => {
          if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
        })
      }
      const undecided = feed.view.approvals.filter(
        (call) => !decisions.some(({ toolCallId, isStale }) => toolCallId === call.toolCallId && !isStale),
      )
      if (undecided.length === 0) return
      // The run only continues after all decisions: the page gets the calls that are left.
      const run = await this.#agent.activeRun(scope)
      if (run?.status === 'suspended' && feed.view.status === 'suspended') answer.catchUp(feed.view)
    })
    return answer
  }

  /** `abortsRun`: whether an abort of this stream also aborts the run. */
  async #open(
    page: ChatPage,
    target: AnswerTarget,
    abortSignal: AbortSignal | undefined,
    abortsRun: () => boolean = () => true,
  ): Promise<AnswerStream> {
    const answer = await page.open(target, abortSignal)
    abortSignal?.addEventListener(
      'abort',
      () => {
        if (answer.isClosed) return
        // A page that reconnects aborts the previous stream in the same tick. Closing the last stream ends the subscription, which the
        // new stream goes on with: so the stream is closed after that tick.
        queueMicrotask(() => {
          if (abortsRun()) void this.#agent.abortThread(page.scope).catch(() => {})
          answer.close()
        })
      },
      { once: true },
    )
    return answer
  }

  #page(threadId: string): ChatPage {
    let page = this.#pages.get(threadId)
    if (!page) {
      const scope = { threadId, ...(this.#resourceId === undefined ? {} : { resourceId: this.#resourceId }) }
      this.#pages.set(threadId, (page = new ChatPage(this.#agent, scope, this.#unsent, () => this.#pages.delete(threadId))))
    }
    return page
  }
}

/** `useChat` passes `headers`, `metadata` and `body` of its own calls: what can't be honored is rejected, with where it belongs. */
function checkRequest(method: string, options: object, names: readonly string[]): void {
  if ('headers' in options && options.headers !== undefined) {
    const why = 'headers of a single request are not sent. Give them to the client: new HeedClient({ headers }).'
    throw new HeedError('unsupported_option', why, { details: { option: 'headers' } })
  }
  checkNames(method, options, names)
}

async function closeOnError<T>(answer: AnswerStream, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    answer.close()
    throw error
  }
}

function isQueued(body: object | undefined): boolean {
  return body !== undefined && 'queue' in body && body.queue === true
}

/** A thread that does not exist yet has no run. */
function nullIfMissing(error: unknown): null {
  if (isHeedError(error) && error.code === 'thread_not_found') return null
  throw error
}
