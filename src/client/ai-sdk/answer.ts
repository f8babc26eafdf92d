import type { UIMessage } from '../../message/ui/ui-message.ts'
import type { Chunk } from '../../run/chunk.ts'
import { isCall } from '../view/parts.ts'
import type { ThreadView } from '../view/thread-view.ts'
import { answeredIn, chatMessages, type ChatMessage } from './chat-message.ts'
import { partsShown, ShownAnswer } from './shown-answer.ts'
import { chunksOfPart, uiChunks, type UIChunk } from './ui-chunks.ts'

/** Whose answer it is. */
export interface Asked {
  /** The message whose answer is wanted. What was said before it was taken is no part of that. */
  from?: string
  /** The message that goes on, as the page has it. With neither, it is whatever the active run writes. */
  writing?: ChatMessage
}

/** The page, as far as an answer needs it. */
export interface AnswerPage {
  /** Another stream of the page waits for the answer to this message: it goes on where others stop. */
  awaits(messageId: string): boolean
  /** Somebody shows the thread whenever no stream does. */
  readonly isFollowed: boolean
}

/** The part of a thread that one stream of a page tells: from the message that asks, or the answer that goes on, to where the run ends or waits. */
export class Answer {
  readonly stream: ReadableStream<UIChunk>
  readonly from: string | undefined
  readonly #page: AnswerPage
  readonly #onEnd: () => void
  /** Calls whose input is told as it is written. */
  readonly #inputs = new Set<string>()
  readonly #shown: ShownAnswer
  /** Calls that the page answered and nothing came of yet. */
  readonly #answered: Map<string, UIChunk>
  readonly #controller: ReadableStreamDefaultController<UIChunk>
  /** The name that history has for the answer: whoever shows history then shows the same message. */
  #id: string | undefined
  #runId: string | undefined
  #isBegun: boolean
  #isOver = false

  constructor({ from, writing }: Asked, page: AnswerPage, onEnd: () => void) {
    this.from = from
    this.#page = page
    this.#onEnd = onEnd
    this.#isBegun = from === undefined
    this.#id = writing?.id
    this.#answered = new Map(writing ? answeredIn(writing) : [])
    this.#shown = new ShownAnswer(partsShown(writing?.parts ?? [], this.#answered))
    let controller!: ReadableStreamDefaultController<UIChunk>
    this.stream = new ReadableStream<UIChunk>({ start: (given) => void (controller = given), cancel: () => this.close() })
    this.#controller = controller
    if (writing) controller.enqueue({ type: 'start' })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get isBegun(): boolean {
    return this.#isBegun
  }

  /** One more chunk of the thread, with the view after it and before. */
  hear(chunk: Chunk, view: ThreadView, before: ThreadView): void {
    if (this.#isOver) return
    if (chunk.type === 'data-thread-snapshot') return this.#hearAll(view)
    const echoed = echoOf(chunk)
    if (!this.#isBegun) {
      this.#isBegun = echoed !== undefined && echoed === this.from
      return
    }
    if (echoed !== undefined) {
      // What the page's own user said is on the page already.
      if (echoed !== this.from && this.#page.awaits(echoed)) this.close()
      return
    }
    if ('payload' in chunk) this.#runId = chunk.runId
    // Of a step that a steering message follows, the end is still to come: it is part of the answer before.
    this.#begin(this.from === undefined ? messageOf(chunk, before) : beginningOf(chunk), before)
    this.#tell(uiChunks(chunk))
    if (chunk.type === 'tool-call-approval' || chunk.type === 'tool-call-suspended') {
      // It asks again: what the page gave before was not what came of it.
      this.#takeBack(chunk.payload.toolCallId)
      if (chunk.payload.more) return
      this.#tell([{ type: 'finish-step' }])
      this.finish()
    } else if (chunk.type === 'finish' || chunk.type === 'abort' || chunk.type === 'error') {
      this.#takeAllBack()
      this.close()
    }
  }

  /** The message was there before it was sent: its answer is what the thread has of it, up to what the user said next. */
  repeat(view: ThreadView): void {
    this.#isBegun = true
    this.#tellAll(view, () => true)
  }

  /** Tells what the thread has of the answer by now, and ends where nothing more follows. */
  catchUp(view: ThreadView): void {
    this.#tellAll(view, (id) => this.#page.awaits(id))
  }

  /** Nothing more follows. */
  finish(): void {
    if (this.#isOver) return
    this.#tell([{ type: 'finish' }])
    this.close()
  }

  /** The stream ends here; what is told later is for others. */
  close(): void {
    if (!this.#end()) return
    try {
      this.#controller.close()
    } catch {
      // Whoever read it has left.
    }
  }

  fail(error: unknown): void {
    if (this.#end()) this.#controller.error(error)
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#onEnd()
    return true
  }

  /** What was missed may have begun the answer, or ended it; what was shown may be said anew. */
  #hearAll(view: ThreadView): void {
    this.#isBegun ||= view.messages.some(({ id }) => id === this.from)
    if (!this.#isBegun) return
    // A stream takes nothing back; whoever follows the thread shows the rest of it.
    if (this.#page.isFollowed) this.close()
    else this.catchUp(view)
  }

  #tellAll(view: ThreadView, isAnother: (id: string) => boolean): void {
    if (this.#isOver) return
    this.#shown.again()
    const messages = chatMessages(view)
    if (this.from === undefined) this.#begin(view.writing ?? openIn(messages))
    const told = answerIn(messages, { from: this.from, answer: this.#id, isAnother: (id) => id !== this.from && isAnother(id) })
    this.#begin(told.messages.find(({ role }) => role === 'assistant')?.id)
    for (const message of told.messages) this.#tellMessage(message, view)
    if (told.isCut) return this.close()
    if (view.status === 'running' && (this.#runId ?? view.runId) === view.runId) return
    if (view.status !== 'suspended') this.#takeAllBack()
    this.finish()
  }

  /** The run is over: an answer that nothing came of has no call that it is for. */
  #takeAllBack(): void {
    for (const toolCallId of this.#answered.keys()) this.#takeBack(toolCallId)
    for (const part of this.#shown.settled()) this.#controller.enqueue(part)
  }

  #takeBack(toolCallId: string): void {
    const call = this.#answered.get(toolCallId)
    if (call) this.#controller.enqueue(call)
    this.#answered.delete(toolCallId)
  }

  /** The answer is this message, of which the view may have something that was told before. */
  #begin(messageId: string | undefined, view?: ThreadView): void {
    if (messageId === undefined || this.#id !== undefined) return
    this.#id = messageId
    this.#tell([{ type: 'start', messageId }])
    const known = view && chatMessages(view).find(({ id }) => id === messageId)
    if (known) this.#tellMessage(known, view)
  }

  /** A text that is being written goes on under its name. */
  #tellMessage({ id, parts }: UIMessage, { writing, openTexts }: ThreadView): void {
    for (const [index, part] of parts.entries()) {
      const open = id === writing ? openTexts.find(({ at }) => at === index) : undefined
      const chunks = chunksOfPart(part, open?.id ?? `${id}/${index}`)
      this.#tell(open ? chunks.filter(({ type }) => !type.endsWith('-end')) : chunks)
    }
  }

  #tell(chunks: readonly UIChunk[]): void {
    for (const chunk of chunks) {
      if (chunk.type === 'tool-input-start') this.#inputs.add(chunk.toolCallId)
      // An input that began before this did is told when it is whole.
      if (chunk.type === 'tool-input-delta' && !this.#inputs.has(chunk.toolCallId)) continue
      if ('toolCallId' in chunk && chunk.type.startsWith('tool-output-')) this.#answered.delete(chunk.toolCallId)
      for (const part of this.#shown.tell(chunk)) this.#controller.enqueue(part)
    }
  }
}

function beginningOf(chunk: Chunk): string | undefined {
  return 'payload' in chunk && (chunk.type === 'start' || chunk.type === 'step-start') ? chunk.payload.messageId : undefined
}

/** The message that a chunk is part of, as far as that is known. */
function messageOf(chunk: Chunk, { messages, writing }: ThreadView): string | undefined {
  const begun = beginningOf(chunk)
  if (begun !== undefined) return begun
  if (!('payload' in chunk)) return writing ?? undefined
  const { payload } = chunk
  const toolCallId = typeof payload === 'object' && payload !== null && 'toolCallId' in payload ? payload.toolCallId : undefined
  const called = typeof toolCallId === 'string' ? messages.findLast(({ parts }) => parts.some((part) => isCall(part, toolCallId))) : undefined
  return called?.id ?? writing ?? undefined
}

/** The message with a call that has no result yet: what comes next is part of it. */
function openIn(messages: readonly UIMessage[]): string | undefined {
  const last = messages.at(-1)
  const isOpen = last?.role === 'assistant' && last.parts.some((part) => 'toolCallId' in part && !part.state.startsWith('output-'))
  return isOpen ? last.id : undefined
}

/** What a thread has of an answer: all that was said since the message that it answers, up to the next that another stream of the page answers. */
function answerIn(
  messages: readonly UIMessage[], { from, answer, isAnother }: { from: string | undefined; answer: string | undefined; isAnother: (id: string) => boolean },
): { messages: UIMessage[]; isCut: boolean } {
  const asked = messages.findIndex(({ id }) => id === from)
  const first = asked >= 0 ? asked + 1 : messages.findIndex(({ id }) => id === answer)
  const since = first < 0 ? [] : messages.slice(first)
  const end = since.findIndex(({ id, role }) => role === 'user' && isAnother(id))
  return { messages: (end < 0 ? since : since.slice(0, end)).filter(({ role }) => role !== 'user'), isCut: end >= 0 }
}

function echoOf(chunk: Chunk): string | undefined {
  return chunk.type === 'data-user-message' && 'data' in chunk ? (chunk.data as { id: string }).id : undefined
}
