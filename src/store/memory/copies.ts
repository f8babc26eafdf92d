import type { MessageContent } from '../../message/message.ts'
import type { RowRecord } from '../core/records.ts'
import { startsMessage } from '../core/starts.ts'
import type { WantedMessages } from '../core/tables.ts'

/** The rows of the wanted messages, numbered and counted from 1. */
export function copiedRows(rows: readonly RowRecord[], wanted: WantedMessages): RowRecord[] {
  const ids = wanted.messageIds && new Set(wanted.messageIds)
  const starts = rows.filter(
    (row) =>
      startsMessage(row) &&
      (wanted.from === undefined || row.createdAt >= wanted.from) &&
      (wanted.to === undefined || row.createdAt <= wanted.to) &&
      (!ids || ids.has(row.messageId)),
  )
  const limit = wanted.limit ?? starts.length
  const chosen = new Set(starts.slice(Math.max(0, starts.length - limit)).map(({ messageId }) => messageId))
  let ordinal = 0
  let turn = 0
  return rows
    .filter((row) => row.role !== 'context' && chosen.has(row.messageId))
    .map((row, index) => {
      const counted = Math.min(row.counted, 1)
      ordinal += counted
      if (counted === 1 && row.turn === row.ordinal) turn = ordinal
      return { ...row, seq: index + 1, ordinal, turn, counted }
    })
}

/** The row of a copy: what it says of itself, and of others of its thread, goes along. */
export function marked(row: RowRecord, mark: string): RowRecord {
  return { ...row, id: row.id + mark, messageId: row.messageId + mark, content: row.role === 'signal' || row.role === 'context' ? markedContent(row.content, mark) : row.content }
}

function markedContent(text: string, mark: string): string {
  const content = JSON.parse(text) as MessageContent
  const { metadata } = content
  if (!metadata) return text
  const { signal, sources } = metadata
  const isNamed = typeof signal === 'object' && signal !== null && 'id' in signal && typeof signal.id === 'string'
  return JSON.stringify({
    ...content,
    metadata: {
      ...metadata,
      ...(isNamed ? { signal: { ...signal, id: `${String(signal.id)}${mark}` } } : {}),
      ...(Array.isArray(sources) ? { sources: sources.map((source) => `${String(source)}${mark}`) } : {}),
    },
  })
}
