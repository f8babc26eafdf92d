import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { MessageRow } from '../../message/row.ts'
import { modelMessagesOf } from '../../prompt/from-rows.ts'
import { closeOpenCalls } from '../../prompt/open-calls.ts'

/** The messages of a run's prompt. They grow by the rows that are appended; what stands before them never changes. */
export class GrowingPrompt {
  readonly #tags: readonly string[]
  #messages: LanguageModelV4Message[]
  #once: LanguageModelV4Message[] | undefined
  /** Rows that nobody has asked for yet: what a run says last is often not read by it. */
  #coming: MessageRow[] = []

  /** `tags`: see `modelMessagesOf`. */
  constructor(rows: readonly MessageRow[], tags: readonly string[]) {
    this.#tags = tags
    this.#messages = this.#grown([], inOrder(rows))
  }

  append(rows: readonly MessageRow[]): void {
    for (const row of rows) this.#coming.push(row)
  }

  /** Starts again from these rows: one of them is not what it was, or does not stand at the end. */
  rebuild(rows: readonly MessageRow[]): void {
    if (this.#once) this.#grown(this.#once, this.#coming)
    this.#coming = []
    this.#messages = this.#grown([], inOrder(rows))
  }

  /** The next prompt is made of these rows, and of those appended before it is asked for. The one after it is as if this had not been. */
  showOnce(rows: readonly MessageRow[]): void {
    this.#grow()
    this.#once = this.#grown([], inOrder(rows))
  }

  /**
   * What the model was sent before it answered last, or, while it is `answering`, for the answer that it gives. Copied when it is asked
   * for: the messages only ever grow, and few want to see them.
   */
  sent(answering: boolean): () => LanguageModelV4Message[] {
    this.#grow()
    const messages = this.#messages
    const answered = answering ? -1 : messages.findLastIndex(({ role }) => role === 'assistant')
    const end = answered < 0 ? messages.length : answered
    return () => messages.slice(0, end)
  }

  next(): readonly LanguageModelV4Message[] {
    this.#grow()
    const messages = this.#once ?? this.#messages
    this.#once = undefined
    return messages
  }

  #grow(): void {
    if (this.#coming.length === 0) return
    this.#grown(this.#messages, this.#coming)
    if (this.#once) this.#grown(this.#once, this.#coming)
    this.#coming = []
  }

  #grown(messages: LanguageModelV4Message[], rows: readonly MessageRow[]): LanguageModelV4Message[] {
    for (const row of rows) for (const message of modelMessagesOf(row, this.#tags)) messages.push(message)
    return messages
  }
}

/** The rows as providers want them: every call with a result, right after it. */
function inOrder(rows: readonly MessageRow[]): readonly MessageRow[] {
  return closeOpenCalls(besideTheirCalls(rows))
}

/**
 * A run that was suspended may have told itself something before the rest of its results came. Those go before it; no model has seen
 * the one without the other.
 */
function besideTheirCalls(rows: readonly MessageRow[]): readonly MessageRow[] {
  let ordered: MessageRow[] | undefined
  let place = -1
  for (let index = 0; index < rows.length; index++) {
    const row = rows[index] as MessageRow
    if (row.role === 'tool' && place >= 0) {
      if (place < index) ordered ??= rows.slice(0, index)
      ordered?.splice(place, 0, row)
      place++
      continue
    }
    ordered?.push(row)
    if (row.role === 'assistant') place = ordered ? ordered.length : index + 1
    else if (row.role !== 'signal' && row.role !== 'context') place = -1
  }
  return ordered ?? rows
}
