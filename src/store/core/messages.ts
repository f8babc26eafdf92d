import { HeedError } from '../../base/errors.ts'
import { joinRows } from '../../message/join.ts'
import type { Message, MessageContent, MessagePart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { searchableText } from '../../recall/text/passages.ts'
import { isUserAuthored } from '../../signals/conversions.ts'
import type { MessageGroup, MessagePatch, MessagePatches } from '../contract/messages.ts'
import { TAIL_SEQ } from '../contract/thread-row.ts'
import type { Quota, Quoted, Scope } from '../contract/threads.ts'
import { removeLaneSignals, removeStoredLaneSignals } from './lanes.ts'
import { scopedThread } from './lease.ts'
import { byteLength, bytesOf, messageRow, prepareRows, rowsOfMail, type PreparedRow, type RowRecord, type ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Appends the rows of a run at the end of its history. Advances the thread's counters; the caller puts the thread. */
export function appendToRun(tables: ThreadTables, thread: ThreadRecord, rows: readonly PreparedRow[]): MessageRow[] {
  return rows.map((row) => appendRow(tables, thread, row, false))
}

/** Appends rows that belong to no run: to the tail band while a run is active. The caller puts the thread. */
export function appendOutsideRun(tables: ThreadTables, thread: ThreadRecord, rows: readonly PreparedRow[]): MessageRow[] {
  const tail = thread.status !== 'idle'
  return rows.map((row) => appendRow(tables, thread, row, tail))
}

/** The same for the only row of a message that the thread does not have yet. */
function appendMessage(tables: ThreadTables, thread: ThreadRecord, row: PreparedRow): MessageRow {
  return appendRow(tables, thread, row, thread.status !== 'idle', true)
}

function appendRow(tables: ThreadTables, thread: ThreadRecord, { row, stored }: PreparedRow, tail: boolean, isFirst = false): MessageRow {
  const isUser = isUserAuthored(row)
  // The message of an assistant counts once, with its first row.
  const counts = isUser || (row.role === 'assistant' && (isFirst || !tables.hasMessage(thread, row.messageId)))
  const ordinal = (tail ? thread.tailOrdinal : thread.ordinal) + (counts ? 1 : 0)
  const turn = isUser ? ordinal : tail ? thread.tailTurn : thread.turn
  const seq = tail ? TAIL_SEQ + thread.tail : thread.nextSeq
  const counted = counts ? (tail ? 2 : 1) : 0

  const { id, messageId, role, type, runId, step, content, createdAt } = stored
  const record: RowRecord = { seq, id, messageId, role, type, runId, step, content, createdAt, ordinal, turn, counted }
  if (!tables.addRow(thread, record)) {
    const existing = tables.row(thread, row.id)
    return existing ? messageRow(thread, existing) : row
  }
  if (tail) {
    thread.tail += 1
    thread.tailOrdinal = ordinal
    thread.tailTurn = turn
  } else {
    thread.nextSeq += 1
    thread.ordinal = ordinal
    thread.turn = turn
  }
  const appended: MessageRow = { ...row }
  appended.threadId = thread.id
  appended.resourceId = thread.resourceId
  appended.seq = seq
  if (runId !== null) appended.runId = runId
  if (step !== null) appended.step = step
  if (tables.decoded && isPlainText(row.content)) record.decoded = appended
  return appended
}

/**
 * True for contents of text parts alone. Such a row may be cached as decoded: decoding its JSON gives an equal object, and it has no nested
 * objects that a holder of the row could change by accident.
 */
function isPlainText(content: MessageRow['content']): boolean {
  for (const key in content) if (key !== 'format' && key !== 'parts' && key !== 'metadata') return false
  for (const part of content.parts) if (part.type !== 'text' || !isFlat(part)) return false
  const { metadata } = content
  if (metadata === undefined) return !('metadata' in content)
  for (const key in metadata) if (key !== 'signal' || !isFlat(metadata[key])) return false
  return true
}

function isFlat(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const fields = value as Record<string, unknown>
  for (const key in fields) {
    const kind = typeof fields[key]
    if (kind !== 'string' && kind !== 'boolean') return false
  }
  return true
}

/** Moves the tail band to the end of history, after the run that it was kept apart from has ended. The caller puts the thread. */
export function mergeTail(tables: ThreadTables, thread: ThreadRecord): void {
  if (thread.tail === 0) return
  tables.mergeTail(thread)
  thread.turn = thread.tailTurn === 0 ? thread.turn : thread.ordinal + thread.tailTurn
  thread.ordinal += thread.tailOrdinal
  thread.nextSeq += thread.tail
  thread.tail = 0
  thread.tailOrdinal = 0
  thread.tailTurn = 0
}

export function saveRows(tables: ThreadTables, scope: Scope, rows: readonly MessageRow[]): MessageRow[] {
  tables.lock?.([scope.threadId])
  const thread = scopedThread(tables, scope)
  const saved = prepareRows(rows).flatMap((prepared) => {
    const existing = tables.row(thread, prepared.stored.id)
    if (!existing) return appendOutsideRun(tables, thread, [prepared])
    const revised = { ...existing, ...prepared.stored, decoded: undefined }
    removeStaleQuotes(tables, thread, existing.messageId, [existing], [revised])
    tables.reviseRow(thread, revised)
    return messageRow(thread, revised)
  })
  thread.updatedAt = tables.now()
  tables.putThread(thread)
  return saved
}

export function deleteMessages(tables: ThreadTables, scope: Scope, messageIds?: readonly string[]): number {
  tables.lock?.([scope.threadId])
  const thread = scopedThread(tables, scope)
  const count = messageIds === undefined ? deleteAllMessages(tables, thread) : deleteSomeMessages(tables, thread, messageIds)
  if (count > 0) {
    thread.updatedAt = tables.now()
    tables.putThread(thread)
  }
  return count
}

function deleteAllMessages(tables: ThreadTables, thread: ThreadRecord): number {
  removeStoredLaneSignals(tables, thread)
  return tables.removeAllRows(thread)
}

function deleteSomeMessages(tables: ThreadTables, thread: ThreadRecord, messageIds: readonly string[]): number {
  const removed = messageIds.filter((id) => tables.removeMessage(thread, id))
  tables.removeQuotes(thread, removed)
  removeLaneSignals(tables, thread, removed)
  return removed.length
}

/** Writes a message as one row, in place of all rows that it has. */
interface MessageWrite {
  thread: ThreadRecord
  prepared: PreparedRow
  existing: RowRecord[]
}

export function saveMessages(tables: ThreadTables, groups: readonly MessageGroup[]): Message[] {
  tables.lock?.(groups.map(({ scope }) => scope.threadId))
  const find = threadFinder(tables)
  return writeMessages(tables, groups.flatMap(({ scope, messages, quota }) => {
    const thread = find(scope)
    // Of two messages with the same id, the later one counts.
    const last = new Map(messages.map((message) => [message.id, message]))
    const writes = [...last.values()].map((message) => planWrite(tables, thread, message, tables.messageRows(thread, message.id)))
    rejectPendingIds(tables, thread, writes.flatMap(({ prepared, existing }) => (existing.length > 0 ? [] : prepared.stored.id)))
    if (quota) checkWriteQuota(tables, thread, quota, writes)
    return writes
  }))
}

export function updateMessages(tables: ThreadTables, groups: readonly MessagePatches[]): Message[] {
  tables.lock?.(groups.map(({ scope }) => scope.threadId))
  const find = threadFinder(tables)
  return writeMessages(tables, groups.flatMap(({ scope, patches, except, quota }) => {
    const thread = find(scope)
    // Several patches of one message are applied one after the other.
    const writes = [...Map.groupBy(patches, ({ id }) => id)].map(([messageId, ofMessage]) => {
      const existing = tables.messageRows(thread, messageId)
      const [message] = joinRows(existing.map((row) => messageRow(thread, row)))
      const details = { threadId: thread.id, messageId }
      if (!message) {
        rejectPendingIds(tables, thread, [messageId])
        throw new HeedError('message_not_found', `Thread ${thread.id} has no message ${messageId}. Nothing was changed.`, { details })
      }
      if (message.role === except) {
        throw new HeedError('forbidden', `You may not change messages of the role '${except}'. Nothing was changed.`, { details })
      }
      return planWrite(tables, thread, ofMessage.reduce(applyPatch, message), existing)
    })
    if (quota) checkWriteQuota(tables, thread, quota, writes)
    return writes
  }))
}

/** What the writes add to what the thread has under their ids. A write that makes a message smaller is never rejected. */
function checkWriteQuota(tables: ThreadTables, thread: ThreadRecord, quota: Quota, writes: readonly MessageWrite[]): void {
  const before = writes.reduce((sum, { existing }) => sum + existing.reduce((bytes, { content }) => bytes + byteLength(content), 0), 0)
  tables.checkQuota(thread.resourceId, quota, { bytes: Math.max(0, bytesOf(writes.map(({ prepared }) => prepared)) - before) })
}

/** Throws `id_taken` for the id of a pending signal or of one of its rows. */
function rejectPendingIds(tables: ThreadTables, thread: ThreadRecord, ids: readonly string[]): void {
  if (ids.length === 0) return
  const pending = new Set(tables.pending(thread).flatMap((mail) => [mail.id, ...rowsOfMail(tables, thread, mail).map((row) => row.id)]))
  const id = ids.find((one) => pending.has(one))
  if (id !== undefined) throw idTaken(thread, id, 'It is pending: cancel it with cancelQueued(), or use another id.')
}

export function idTaken(thread: ThreadRecord, id: string, what: string): HeedError {
  return new HeedError('id_taken', `Thread ${thread.id} has something else under the id ${id}. ${what}`, {
    details: { threadId: thread.id, id },
  })
}

/** Returns the same record for each scope of one thread, so that all writes of the transaction advance the same counters. */
function threadFinder(tables: ThreadTables): (scope: Scope) => ThreadRecord {
  const found = new Map<string, ThreadRecord>()
  return (scope) => {
    const thread = scopedThread(tables, scope)
    const known = found.get(thread.id)
    if (known) return known
    found.set(thread.id, thread)
    return thread
  }
}

function applyPatch(message: Message, { role, createdAt, type, content, keepCharacters }: MessagePatch): Message {
  const { content: before } = message
  const patched = content ? { ...before, ...content, format: 2 as const, ...mergeMetadata(before, content) } : before
  return {
    ...message,
    ...(role !== undefined && { role }),
    ...(createdAt && { createdAt }),
    ...(type !== undefined && { type }),
    content: keepCharacters === undefined ? patched : { ...patched, parts: cutText(patched.parts, keepCharacters) },
  }
}

/** The parts with so many characters of their text. */
function cutText(parts: readonly MessagePart[], characters: number): MessagePart[] {
  let left = characters
  return parts.flatMap((part) => {
    if (part.type !== 'text') return part
    const text = part.text.slice(0, left)
    left -= text.length
    return text === '' ? [] : { ...part, text }
  })
}

function mergeMetadata(before: MessageContent, { metadata }: Partial<MessageContent>): Pick<MessageContent, 'metadata'> {
  const merged = new Map(Object.entries(before.metadata ?? {}))
  for (const [key, value] of Object.entries(metadata ?? {})) {
    if (value === null) merged.delete(key)
    else if (value !== undefined) merged.set(key, value)
  }
  return merged.size === 0 && !before.metadata ? {} : { metadata: Object.fromEntries(merged) }
}

/** Does everything that can reject the message, before the first write. */
function planWrite(tables: ThreadTables, thread: ThreadRecord, message: Message, existing: RowRecord[]): MessageWrite {
  const [first] = existing
  const details = { threadId: thread.id, messageId: message.id }
  const name = `Message ${message.id} of thread ${thread.id}`
  if (first && first.role !== message.role) {
    throw new HeedError('invalid_message', `${name} has the role '${first.role}', which can't change to '${message.role}'.`, { details })
  }
  if (thread.status !== 'idle' && existing.some((row) => row.runId !== null && row.runId === thread.runId)) {
    throw new HeedError('thread_active', `${name} belongs to the active run. Change it when the run has ended.`, {
      retryable: true,
      details,
    })
  }
  if (!first && tables.row(thread, message.id)) {
    const problem = `The id ${message.id} is taken in thread ${thread.id} by a row that is not a message.`
    throw new HeedError('invalid_message', `${problem} Choose another id.`, { details })
  }
  const [prepared] = prepareRows([messageToRow(message, first)])
  if (!prepared) throw new HeedError('invalid_message', `Message ${message.id} can't be stored.`)
  return { thread, prepared, existing }
}

function messageToRow({ id, role, createdAt, type, content }: Message, first: RowRecord | undefined): MessageRow {
  return {
    id: first?.id ?? id,
    messageId: id,
    role,
    createdAt,
    ...(type !== undefined && { type }),
    ...(first?.runId !== null && first?.runId !== undefined && { runId: first.runId }),
    ...(first?.step !== null && first?.step !== undefined && { step: first.step }),
    content,
  }
}

function writeMessages(tables: ThreadTables, writes: readonly MessageWrite[]): Message[] {
  const rows = writes.flatMap(({ thread, prepared, existing }) => {
    const [first, ...rest] = existing
    if (!first) return appendMessage(tables, thread, prepared)
    const revised = { ...first, ...prepared.stored }
    removeStaleQuotes(tables, thread, first.messageId, existing, [revised])
    tables.reviseRow(thread, revised)
    for (const row of rest) tables.removeRow(thread, row.id)
    return messageRow(thread, revised)
  })
  for (const thread of new Set(writes.map((write) => write.thread))) {
    thread.updatedAt = tables.now()
    tables.putThread(thread)
  }
  // Each by itself: they need not be adjacent in history.
  return rows.flatMap((row) => joinRows([row]))
}

/** The rows without those whose quotes are outdated: a quoted message must exist, have the same resource, and contain the quoted text. */
export function rowsWithValidQuotes(
  tables: ThreadTables, thread: ThreadRecord, rows: readonly MessageRow[], quoted: readonly Quoted[],
): readonly MessageRow[] {
  const outdated = new Set(quoted.filter((quote) => !isValidQuote(tables, thread, quote)).map(({ rowId }) => rowId))
  return outdated.size === 0 ? rows : rows.filter(({ id }) => !outdated.has(id))
}

function isValidQuote(tables: ThreadTables, thread: ThreadRecord, { threadId, messageId, text }: Quoted): boolean {
  const source = threadId === thread.id ? thread : tables.thread(threadId)
  if (source?.resourceId !== thread.resourceId) return false
  const rows = tables.messageRows(source, messageId)
  return rows.length > 0 && quotableText(source, rows).includes(text)
}

/** Removes the context rows that quote a message whose text has changed. */
export function removeStaleQuotes(
  tables: ThreadTables, thread: ThreadRecord, messageId: string, before: readonly RowRecord[], after: readonly RowRecord[],
): void {
  if (before.length > 0 && quotableText(thread, before) !== quotableText(thread, after)) tables.removeQuotes(thread, [messageId])
}

/** The text of a message that has these rows. */
function quotableText(thread: ThreadRecord, rows: readonly RowRecord[]): string {
  return joinRows(rows.map((row) => messageRow(thread, row))).map(({ content }) => searchableText(content)).join('\n')
}

