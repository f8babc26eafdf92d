import { HeedError, isHeedError } from '../../base/errors.ts'
import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { AgentClient } from '../agent.ts'
import type { Answer, Asked } from './answer.ts'
import { contentsOf, givenIn, questionsIn, type ChatMessage } from './chat-message.ts'
import { ChatPage } from './chat-page.ts'
import type { UIChunk } from './ui-chunks.ts'

export interface HeedChatTransportOptions {
  agent: AgentClient
  /** Whose threads these are. May be left out where the server knows it from who asks. */
  resourceId?: string
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
    const last = messages.at(-1)
    if (trigger === 'regenerate-message') throw new HeedError('unsupported_option', 'A thread is not rewritten: send the message again instead of regenerating its answer.')
    if (!last) throw new HeedError('invalid_argument', 'There is no message to send.')
    const page = this.#page(chatId)
    const answer = last.role === 'user' ? await this.#ask(page, last, isQueued(body), abortSignal) : await this.#decide(page, last, abortSignal)
    return answer.stream
  }

  /** The answer that is being written or waits for somebody, as far as it has come and as it goes on; null when there is none. */
  async reconnectToStream({ chatId, abortSignal }: { chatId: string; abortSignal?: AbortSignal | undefined }): Promise<ReadableStream<UIChunk> | null> {
    const page = this.#page(chatId)
    const turn = ++page.resumed
    const answer = await this.#open(page, {}, abortSignal, () => page.resumed === turn)
    if (page.feed.view.status !== 'idle') {
      answer.catchUp(page.feed.view)
      return answer.stream
    }
    // Asked while listening: what began and was not heard of yet will be.
    const run = await closedUnless(answer, () => this.#agent.activeRun(page.scope).catch(ifAbsent))
    if (run) return answer.stream
    answer.close()
    return null
  }

  /**
   * Shows the thread whenever no stream of this page does: what other tabs send and what wakes the thread, as it is written, and after every
   * answer what history says of it. Answers how to stop that.
   */
  follow<Shown extends { id: string }>(chatId: string, setMessages: (update: (current: Shown[]) => Shown[]) => void): () => void {
    return this.#page(chatId).follow((update) => setMessages((current) => [...update(current as unknown as UIMessage[])] as unknown as Shown[]))
  }

  async #ask(page: ChatPage, message: ChatMessage, queued: boolean, abortSignal: AbortSignal | undefined): Promise<Answer> {
    const answer = await this.#open(page, { from: message.id }, abortSignal)
    await closedUnless(answer, async () => {
      const sent = { message: { id: message.id, contents: contentsOf(message) }, ...page.scope }
      const { duplicate = false } = await (queued ? this.#agent.queueMessage(sent) : this.#agent.sendMessage(sent))
      page.accepted(answer, { isRepeated: duplicate })
    })
    return answer
  }

  /** The page's answers to calls that wait: decisions, and data. */
  async #decide(page: ChatPage, message: ChatMessage, abortSignal: AbortSignal | undefined): Promise<Answer> {
    const { feed, scope } = page
    const answer = await this.#open(page, { writing: message }, abortSignal)
    await closedUnless(answer, async () => {
      const given = givenIn(message, feed.view)
      if (given.length === 0 && questionsIn(message).size === 0) {
        throw new HeedError('invalid_argument', 'The last message is neither a user message nor an answer to a call that waits.')
      }
      // Somebody else was faster: what became of it is told all the same.
      if (feed.view.status !== 'suspended') return answer.catchUp(feed.view)
      for (const { toolCallId, approval, resumeData } of given) {
        const why = approval?.reason === undefined ? {} : { declineContext: { reason: approval.reason } }
        const sent = approval
          ? this.#agent.sendToolApproval({ ...scope, toolCallId, approved: approval.approved, ...why })
          : this.#agent.sendStreamResume({ ...scope, toolCallId, resumeData })
        await sent.catch((error: unknown) => {
          if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
        })
      }
      const left = feed.view.approvals.filter((call) => !given.some(({ toolCallId }) => toolCallId === call.toolCallId))
      // A run goes on when everything is decided: the page is shown what still waits.
      if (left.length > 0 && (await this.#agent.activeRun(scope))?.status === 'suspended' && feed.view.status === 'suspended') answer.catchUp(feed.view)
    })
    return answer
  }

  /** `isOurs`: whether an abort is meant for the run, and not for this stream alone. */
  async #open(page: ChatPage, asked: Asked, abortSignal: AbortSignal | undefined, isOurs: () => boolean = () => true): Promise<Answer> {
    const answer = await page.open(asked, abortSignal)
    abortSignal?.addEventListener('abort', () => {
      if (answer.isOver) return
      // A page that resumes again gives the stream before up in the same breath.
      queueMicrotask(() => isOurs() && void this.#agent.abortThread(page.scope).catch(() => {}))
      answer.close()
    }, { once: true })
    return answer
  }

  #page(threadId: string): ChatPage {
    let page = this.#pages.get(threadId)
    if (!page) {
      const scope = { threadId, ...(this.#resourceId === undefined ? {} : { resourceId: this.#resourceId }) }
      this.#pages.set(threadId, (page = new ChatPage(this.#agent, scope, () => this.#pages.delete(threadId))))
    }
    return page
  }
}

/** A stream that can't begin is none. */
async function closedUnless<T>(answer: Answer, work: () => Promise<T>): Promise<T> {
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

/** A thread that nobody wrote to has no run. */
function ifAbsent(error: unknown): null {
  if (isHeedError(error) && error.code === 'thread_not_found') return null
  throw error
}
