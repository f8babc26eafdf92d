import { withAttachments } from './attachments.ts'
import { joinRow, joinRowsWith, messageOf } from './join.ts'
import type { Message, MessageContent } from './message.ts'
import type { MessageRow } from './row.ts'
import { signalType } from './signal-record.ts'

/**
 * The messages of rows as processors see them. What a user said has the role `user`, however it was sent: a guardrail that looks for it must
 * not have to know. The record of the signal stays at `content.metadata.signal`; what is stored stays a signal. Its files are among its
 * `experimental_attachments`, whichever way they came.
 */
export function seenMessages(rows: readonly MessageRow[]): Message[] {
  const [only] = rows
  if (!only || rows.length > 1) return joinRowsWith(rows, ofOneRow)
  const message = seenMessage(only)
  return message ? [message] : []
}

/** The message of a row that is all there is of it, as processors see it. Nothing for one that only a model sees. */
export function seenMessage(row: MessageRow): Message | undefined {
  return row.role === 'assistant' || row.role === 'tool' || row.role === 'context' ? joinRow(row) : ofOneRow(row)
}

function ofOneRow(row: MessageRow): Message {
  return row.role === 'user' || isUserSignal(row) ? messageOf(row, 'user', withAttachments(row.content)) : messageOf(row, row.role as Message['role'], row.content)
}

/** A message as processors see it. */
export function asSeen(message: Message): Message {
  const isSignal = isUserSignal(message)
  if (!isSignal && message.role !== 'user') return message
  const content = withAttachments(message.content)
  return isSignal || content !== message.content ? { ...message, role: 'user', content } : message
}

/** True when `row` is the stored form of what processors see with the role `user`. */
export function isUserSignal(row: Pick<MessageRow, 'role' | 'content'> & { type?: string }): boolean {
  return row.role === 'signal' && signalType(row) === 'user'
}

/** What a processor made of a user's signal, as that signal: also when it gave back no more than words. */
export function signalContent({ content: before }: MessageRow, after: MessageContent): MessageContent {
  const record = after.metadata?.signal ?? before.metadata?.signal
  return record === undefined ? after : { ...after, metadata: { ...after.metadata, signal: record } }
}
