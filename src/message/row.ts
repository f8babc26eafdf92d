import type { MessageContent } from './message.ts'

/**
 * One append to a thread. A run never rewrites rows, so that its cost stays linear in its output: each step appends an `assistant` row
 * and, after its tools, a `tool` row with their results.
 *
 * `context` rows (recalled passages, changes of working memory) are part of the prompt and hidden from readers of the thread.
 */
export interface MessageRow {
  /** Unique within the thread. */
  id: string
  /** The message of this row. Consecutive rows with one `messageId` are one message. */
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
  /** The position in the thread, assigned by the store. Rows are ordered by it, never by time. */
  seq?: number
}

/** What a row of history is. A `context` row is part of the prompt and hidden from readers of the thread. */
export type RowRole = 'user' | 'assistant' | 'tool' | 'system' | 'signal' | 'context'

/** True for the context row that quotes the messages which recall found. */
export function isRecallBlock({ role, content: { metadata } }: Pick<MessageRow, 'role' | 'content'>): boolean {
  return role === 'context' && Array.isArray(metadata?.recall)
}
