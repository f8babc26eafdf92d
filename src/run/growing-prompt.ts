import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { MessageRow } from '../message/row.ts'
import { modelMessagesOf } from '../prompt/from-rows.ts'
import { closeOpenCalls } from '../prompt/open-calls.ts'

/** The messages of a run's prompt. They grow by the rows that are appended; what stands before them never changes. */
export class GrowingPrompt {
  #messages: LanguageModelV4Message[]
  #once: LanguageModelV4Message[] | undefined

  constructor(rows: readonly MessageRow[]) {
    this.#messages = grown([], closeOpenCalls(rows))
  }

  append(rows: readonly MessageRow[]): void {
    grown(this.#messages, rows)
    if (this.#once) grown(this.#once, rows)
  }

  /** Starts again from these rows: input is not what it was. */
  rebuild(rows: readonly MessageRow[]): void {
    this.#messages = grown([], closeOpenCalls(rows))
  }

  /** The next prompt is made of these rows, and of those appended before it is asked for. The one after it is as if this had not been. */
  showOnce(rows: readonly MessageRow[]): void {
    this.#once = grown([], closeOpenCalls(rows))
  }

  next(): readonly LanguageModelV4Message[] {
    const messages = this.#once ?? this.#messages
    this.#once = undefined
    return messages
  }
}

function grown(messages: LanguageModelV4Message[], rows: readonly MessageRow[]): LanguageModelV4Message[] {
  for (const row of rows) for (const message of modelMessagesOf(row)) messages.push(message)
  return messages
}
