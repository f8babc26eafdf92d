import type { MessageContent } from './message.ts'

/**
 * One append to a thread. Rows are never rewritten while a run lives, so that what a run costs stays linear in what it says:
 * each step appends an `assistant` row and, after its tools ran, a `tool` row with their results.
 *
 * `context` rows are what the model was shown besides the conversation (recalled passages, changes of working memory). They are
 * part of the prompt and hidden from readers.
 */
export interface MessageRow {
  /** Unique within the thread. */
  id: string
  /** The message that this row is a part of. Rows that follow each other with one `messageId` are one message. */
  messageId: string
  role: RowRole
  createdAt: Date
  threadId?: string
  resourceId?: string
  /** For signals: the tag the model sees. */
  type?: string
  content: MessageContent
  /** The run that wrote or drained the row, and the step within it. */
  runId?: string
  step?: number
  /** Position in the thread, given by the store. Order is this and never a time. */
  seq?: number
}

export type RowRole = 'user' | 'assistant' | 'tool' | 'system' | 'signal' | 'context'
