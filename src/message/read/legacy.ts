import { HeedError } from '../../base/errors.ts'
import type { Message, MessageContent } from '../message.ts'
import { readPart } from './part.ts'
import type { Raw } from './raw.ts'
import { dateOf, firstText, isRaw } from './raw.ts'
import type { MessageRow, RowRole } from '../row.ts'
import { isCurrent, keepUnknown, readContent, readParts } from './stored-content.ts'

/**
 * Rows that other and older writers stored. Content may be a text, a list of parts of model messages, JSON of either, or today's
 * format with what earlier ones kept beside the parts. Parts that nobody knows are kept as they are. A tool row belongs to the
 * message before it.
 */
export function decodeRows(stored: Iterable<unknown>): MessageRow[] {
  const rows: MessageRow[] = []
  let turn: string | undefined
  for (const raw of stored) {
    const row = decodeRow(raw)
    if (row.role === 'tool' && turn !== undefined && row.messageId === row.id) row.messageId = turn
    turn = row.role === 'assistant' || row.role === 'tool' ? row.messageId : undefined
    rows.push(row)
  }
  return rows
}

/** One stored message, whole: see `decodeRows`. */
export function decodeMessage(stored: unknown): Message {
  const { messageId, role, runId: _, step: __, seq: ___, ...row } = decodeRow(stored)
  return { ...row, id: messageId, role: role === 'tool' ? 'assistant' : role === 'context' ? 'user' : role }
}

function decodeRow(stored: unknown): MessageRow {
  if (!isRaw(stored) || typeof stored.id !== 'string') {
    throw new HeedError('store_corrupt', 'A stored message has no id. Remove or repair it.')
  }
  const { id, type, runId, step, seq } = stored
  const threadId = firstText(stored.threadId, stored.thread_id)
  const resourceId = firstText(stored.resourceId, stored.resource_id, stored.resourceid)
  return {
    id,
    messageId: firstText(stored.messageId) ?? id,
    role: roleOf(stored),
    createdAt: dateOf(stored.createdAt) ?? dateOf(stored.created_at) ?? new Date(0),
    ...(threadId !== undefined && { threadId }),
    ...(resourceId !== undefined && { resourceId }),
    ...(typeof type === 'string' && !olderTypes.includes(type) && { type }),
    content: decodeContent(stored.content),
    ...(typeof runId === 'string' && { runId }),
    ...(typeof step === 'number' && { step }),
    ...(typeof seq === 'number' && { seq }),
  }
}

// What `type` said before it named the tag of a signal.
const olderTypes = ['v2', 'text', 'tool-call', 'tool-result']
const roles: readonly RowRole[] = ['user', 'assistant', 'tool', 'system', 'signal', 'context']

function roleOf({ id, role }: Raw): RowRole {
  const known = roles.find(name => name === role)
  if (known) return known
  const message = `The stored message ${String(id)} has the role ${JSON.stringify(role)}, which is none of ${roles.join(', ')}.`
  throw new HeedError('store_corrupt', message, { details: { id, role } })
}

export function decodeContent(content: unknown): MessageContent {
  const value = typeof content === 'string' ? (parsedContent(content) ?? content) : content
  if (typeof value === 'string') return { format: 2, parts: value === '' ? [] : [{ type: 'text', text: value }] }
  if (Array.isArray(value)) return { format: 2, parts: readParts(value, keepUnknown) }
  if (!isRaw(value)) return { format: 2, parts: [] }
  return isCurrent(value) ? value : readContent(value, keepUnknown)
}

/** Content that was stored as JSON. A text that merely looks like JSON is a text. */
function parsedContent(text: string): Raw | unknown[] | undefined {
  if (!/^\s*(\{|\[\s*\{)/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value)) return value.every(part => typeof readPart(part) !== 'string') ? value : undefined
    return isRaw(value) && value.format === 2 ? value : undefined
  } catch {
    return undefined
  }
}
