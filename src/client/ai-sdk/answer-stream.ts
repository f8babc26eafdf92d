import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { Chunk } from '../../message/chunk.ts'
import { hasCall, type ThreadView } from '../view/thread-view.ts'
import { answeredCalls, chatMessages, chunksOfPart, uiChunks, type ChatMessage, type UIChunk } from './conversion.ts'
import { partsBeforeAnswers, ReplayFilter } from './replay-filter.ts'

/** Which answer a stream has. With neither, it is the message that the active run writes. */
export interface AnswerTarget {
  /** The user message that is answered. Chunks before its echo are not part of the answer. */
  from?: string
  /** The assistant message that is continued, as the page has it. */
  writing?: ChatMessage
}

/** What an answer needs of its page. */
export interface AnswerPage {
  /** Another stream of the page has the answer to this message: this one ends at its echo. */
  awaits(messageId: string): boolean
  /** A follower displays the thread while no stream is open. */
  readonly isFollowed: boolean
}

/** A stream of the AI SDK with one answer: from the user message, or the continued message, until the run ends or is suspended. */
export class AnswerStream {
  readonly stream: ReadableStream<UIChunk>
  readonly from: string | undefined
  readonly #page: AnswerPage
  readonly #onEnd: () => void
  /** Calls whose input is streamed. */
  readonly #streamedInputs = new Set<string>()
  readonly #filter: ReplayFilter
  /** Calls that the page answered and that have no result yet, each as it was before the answer. */
  readonly #answered: Map<string, UIChunk>
  readonly #controller: ReadableStreamDefaultController<UIChunk>
  /** The id of the answer in history, so that a display of history shows the same message. */
  #id: string | undefined
  #runId: string | undefined
  #isBegun: boolean
  #isDelegated = false
  #isClosed = false

  constructor({ from, writing }: AnswerTarget, page: AnswerPage, onEnd: () => void) {
    this.from = from
    this.#page = page
    this.#onEnd = onEnd
    this.#isBegun = from === undefined
    this.#id = writing?.id
    this.#answered = new Map(writing ? answeredCalls(writing) : [])
    this.#filter = new ReplayFilter(partsBeforeAnswers(writing?.parts ?? [], this.#answered))
    let controller!: ReadableStreamDefaultController<UIChunk>
    this.stream = new ReadableStream<UIChunk>({ start: (created) => void (controller = created), cancel: () => this.close() })
    this.#controller = controller
    if (writing) controller.enqueue({ type: 'start' })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isBegun(): boolean {
    return this.#isBegun
  }

  /** Followers display the answer, since it differs from what the stream wrote. The stream only writes the end. */
  get isDelegated(): boolean {
    return this.#isDelegated
  }

  /** Receives a chunk of the thread, with the view after and before it. */
  receive(chunk: Chunk, view: ThreadView, before: ThreadView): void {
    if (this.#isClosed) return
    if (chunk.type === 'data-thread-snapshot') return this.#receiveSnapshot(view)
    if (this.#isDelegated) return this.#receiveEnd(chunk)
    const echoed = echoedMessage(chunk)
    if (!this.#isBegun) {
      this.#isBegun = echoed !== undefined && echoed === this.from
      return
    }
    if (echoed !== undefined) {
      // The page already shows the messages of its own user.
      if (echoed !== this.from && this.#page.awaits(echoed)) this.close()
      return
    }
    if ('payload' in chunk) this.#runId = chunk.runId
    // The end of a step that a message interrupted comes after the echo and is part of the previous answer.
    this.#begin(this.from === undefined ? messageIdOf(chunk, before) : startedMessage(chunk), before)
    this.#write(uiChunks(chunk))
    if (chunk.type === 'tool-call-approval' || chunk.type === 'tool-call-suspended') {
      // The call needs a decision again: an earlier one of this page was not used.
      this.#revertAnswer(chunk.payload.toolCallId)
      if (chunk.payload.more) return
      this.#write([{ type: 'finish-step' }])
      this.finish()
    } else if (chunk.type === 'finish' || chunk.type === 'abort' || chunk.type === 'error') {
      this.#revertAnswers()
      this.close()
    }
  }

  /** For a message that the thread already had: writes its answer, up to the next user message. */
  replay(view: ThreadView): void {
    this.#isBegun = true
    this.#writeAnswer(view, () => true)
  }

  /** Writes the answer as far as the thread has it, and ends the stream if the run is not active. */
  catchUp(view: ThreadView): void {
    this.#writeAnswer(view, (id) => this.#page.awaits(id))
  }

  /** Ends the answer. */
  finish(): void {
    if (this.#isClosed) return
    this.#write([{ type: 'finish' }])
    this.close()
  }

  /** Ends the stream, although the answer may continue elsewhere. */
  close(): void {
    if (!this.#end()) return
    try {
      this.#controller.close()
    } catch {
      // The reader has cancelled the stream.
    }
  }

  fail(error: unknown): void {
    if (this.#end()) this.#controller.error(error)
  }

  #end(): boolean {
    if (this.#isClosed) return false
    this.#isClosed = true
    this.#onEnd()
    return true
  }

  /** Missed chunks may have begun or ended the answer, or replaced what was shown. */
  #receiveSnapshot(view: ThreadView): void {
    this.#isBegun ||= view.messages.some(({ id }) => id === this.from)
    if (!this.#isBegun) return
    if (!this.#page.isFollowed || !this.#filter.hasWritten) return this.catchUp(view)
    // A stream can't replace what it wrote. It stays open, because the page shows by it that the run is active.
    this.#isDelegated = true
    if (!this.#isActive(view)) this.finish()
  }

  #receiveEnd(chunk: Chunk): void {
    const echoed = echoedMessage(chunk)
    if (echoed !== undefined && echoed !== this.from && this.#page.awaits(echoed)) return this.close()
    const isWaiting = chunk.type === 'tool-call-approval' || chunk.type === 'tool-call-suspended'
    if (isWaiting && !chunk.payload.more) return this.finish()
    if (chunk.type !== 'finish' && chunk.type !== 'abort' && chunk.type !== 'error') return
    this.#write(uiChunks(chunk))
    this.close()
  }

  /** The run of this answer is running. */
  #isActive({ status, runId }: ThreadView): boolean {
    return status === 'running' && (this.#runId ?? runId) === runId
  }

  #writeAnswer(view: ThreadView, isOther: (id: string) => boolean): void {
    if (this.#isClosed) return
    this.#filter.restart()
    const messages = chatMessages(view)
    if (this.from === undefined) this.#begin(view.writing ?? openMessage(messages))
    const answer = findAnswer(messages, this.from, this.#id, (id) => id !== this.from && isOther(id))
    this.#begin(answer.messages.find(({ role }) => role === 'assistant')?.id)
    for (const message of answer.messages) this.#writeMessage(message, view)
    if (answer.isCut) return this.close()
    if (this.#isActive(view)) return
    if (view.status !== 'suspended') this.#revertAnswers()
    this.finish()
  }

  /** The run has ended: calls that the page answered and that got no result are shown as unanswered. */
  #revertAnswers(): void {
    for (const toolCallId of this.#answered.keys()) this.#revertAnswer(toolCallId)
    for (const part of this.#filter.endQuestions()) this.#controller.enqueue(part)
  }

  #revertAnswer(toolCallId: string): void {
    const call = this.#answered.get(toolCallId)
    if (call) this.#controller.enqueue(call)
    this.#answered.delete(toolCallId)
  }

  /** Starts the answer with this message, of which the view may already have parts. */
  #begin(messageId: string | undefined, view?: ThreadView): void {
    if (messageId === undefined || this.#id !== undefined) return
    this.#id = messageId
    this.#write([{ type: 'start', messageId }])
    const known = view && chatMessages(view).find(({ id }) => id === messageId)
    if (known) this.#writeMessage(known, view)
  }

  /** A text that is being written stays open, with its id. */
  #writeMessage({ id, parts }: UIMessage, { writing, openTexts }: ThreadView): void {
    for (const [index, part] of parts.entries()) {
      const open = id === writing ? openTexts.find(({ at }) => at === index) : undefined
      const chunks = chunksOfPart(part, open?.id ?? `${id}/${index}`)
      this.#write(open ? chunks.filter(({ type }) => !type.endsWith('-end')) : chunks)
    }
  }

  #write(chunks: readonly UIChunk[]): void {
    for (const chunk of chunks) {
      if (chunk.type === 'tool-input-start') this.#streamedInputs.add(chunk.toolCallId)
      // An input whose start is not in this stream is written when it is complete.
      if (chunk.type === 'tool-input-delta' && !this.#streamedInputs.has(chunk.toolCallId)) continue
      if ('toolCallId' in chunk && chunk.type.startsWith('tool-output-')) this.#answered.delete(chunk.toolCallId)
      for (const part of this.#filter.accept(chunk)) this.#controller.enqueue(part)
    }
  }
}

function startedMessage(chunk: Chunk): string | undefined {
  return 'payload' in chunk && (chunk.type === 'start' || chunk.type === 'step-start') ? chunk.payload.messageId : undefined
}

/** The id of the message that a chunk belongs to, if it is known. */
function messageIdOf(chunk: Chunk, { messages, writing }: ThreadView): string | undefined {
  const started = startedMessage(chunk)
  if (started !== undefined) return started
  if (!('payload' in chunk)) return writing ?? undefined
  const { payload } = chunk
  const toolCallId = typeof payload === 'object' && payload !== null && 'toolCallId' in payload ? payload.toolCallId : undefined
  const called = typeof toolCallId === 'string' ? messages.findLast((message) => hasCall(message, toolCallId)) : undefined
  return called?.id ?? writing ?? undefined
}

/** The last message, if it has a call without a result: the run continues it. */
function openMessage(messages: readonly UIMessage[]): string | undefined {
  const last = messages.at(-1)
  const isOpen = last?.role === 'assistant' && last.parts.some((part) => 'toolCallId' in part && !part.state.startsWith('output-'))
  return isOpen ? last.id : undefined
}

/** The messages of an answer: those after the user message, up to the next user message that another stream answers. */
function findAnswer(
  messages: readonly UIMessage[], from: string | undefined, answerId: string | undefined, isOther: (id: string) => boolean,
): { messages: UIMessage[]; isCut: boolean } {
  const asked = messages.findIndex(({ id }) => id === from)
  const first = asked >= 0 ? asked + 1 : messages.findIndex(({ id }) => id === answerId)
  const since = first < 0 ? [] : messages.slice(first)
  const end = since.findIndex(({ id, role }) => role === 'user' && isOther(id))
  return { messages: (end < 0 ? since : since.slice(0, end)).filter(({ role }) => role !== 'user'), isCut: end >= 0 }
}

function echoedMessage(chunk: Chunk): string | undefined {
  return chunk.type === 'data-user-message' && 'data' in chunk ? (chunk.data as { id: string }).id : undefined
}
