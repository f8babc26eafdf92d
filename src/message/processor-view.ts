import { withAttachments } from './attachments.ts'
import { joinRow, joinRowsWith, messageOf } from './join.ts'
import type { Message, MessageContent } from './message.ts'
import type { MessageRow } from './row.ts'
import { signalType } from './content.ts'

/**
 * The messages of rows as processors see them. Input of a user has the role `user`, also when it was sent as a signal, so that a
 * guardrail has one role to check. The signal's record stays at `content.metadata.signal`, and the row stays a signal. All files of a
 * user's message are among its `experimental_attachments`.
 */
export function processorMessages(rows: readonly MessageRow[]): Message[] {
  const [only] = rows
  if (!only || rows.length > 1) return joinRowsWith(rows, singleRowMessage)
  const message = processorMessage(only)
  return message ? [message] : []
}

/** The message of a single row as processors see it; undefined for a context row. */
export function processorMessage(row: MessageRow): Message | undefined {
  return row.role === 'assistant' || row.role === 'tool' || row.role === 'context' ? joinRow(row) : singleRowMessage(row)
}

function singleRowMessage(row: MessageRow): Message {
  return row.role === 'user' || isUserSignal(row)
    ? messageOf(row, 'user', withAttachments(row.content))
    : messageOf(row, row.role as Message['role'], row.content)
}

/** A message as processors see it. */
export function toProcessorMessage(message: Message): Message {
  const isSignal = isUserSignal(message)
  if (!isSignal && message.role !== 'user') return message
  const content = withAttachments(message.content)
  return isSignal || content !== message.content ? { ...message, role: 'user', content } : message
}

/** True for a signal that processors see with the role `user`. */
export function isUserSignal(row: Pick<MessageRow, 'role' | 'content'> & { type?: string }): boolean {
  return row.role === 'signal' && signalType(row) === 'user'
}

/** The content that a processor returned for a user's signal, with the signal's record: a processor may return the text alone. */
export function withSignalRecord({ content: before }: MessageRow, after: MessageContent): MessageContent {
  const record = after.metadata?.signal ?? before.metadata?.signal
  return record === undefined ? after : { ...after, metadata: { ...after.metadata, signal: record } }
}
