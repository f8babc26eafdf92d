import type { Thread } from 'heed/react'
import { dayOf } from '../app/time.tsx'

export type UIMessage = Thread['messages'][number]
type UIPart = UIMessage['parts'][number]
export type ToolPart = Extract<UIPart, { toolCallId: string }>

/** A signal as a message shows it. */
export interface SignalData {
  type: string
  tagName: string
  contents: unknown
  attributes?: Record<string, unknown>
  metadata?: Record<string, unknown>
}

/** One row of a transcript. Rows of an unchanged message are the same objects, so that they are not drawn again. */
export type Row = { key: string; messageId: string } & (
  | { kind: 'user'; message: UIMessage; text: string; files: readonly FilePart[] }
  | { kind: 'text'; text: string; isFirst: boolean; at: string | undefined }
  | { kind: 'reasoning'; text: string }
  | { kind: 'tool'; part: ToolPart }
  | { kind: 'file'; part: FilePart }
  | { kind: 'source'; url: string; title: string }
  | { kind: 'data'; name: string; data: unknown }
  | { kind: 'state'; signal: SignalData; at: string | undefined }
  | { kind: 'notification'; signal: SignalData; at: string | undefined }
  | { kind: 'watch'; signal: SignalData; at: string | undefined }
  | { kind: 'signal'; signal: SignalData; at: string | undefined }
  | { kind: 'error'; message: string; code: string | undefined }
  | { kind: 'day'; text: string }
)

export type FilePart = Extract<UIPart, { type: 'file' | 'reasoning-file' }>

const known = new WeakMap<UIMessage, readonly Row[]>()

/** The rows of all messages, in order. */
export function rowsOf(messages: readonly UIMessage[]): Row[] {
  const rows: Row[] = []
  let lastDay: string | undefined
  for (const message of messages) {
    const { createdAt } = message.metadata ?? {}
    const day = createdAt === undefined ? undefined : createdAt.slice(0, 10)
    if (day !== undefined && lastDay !== undefined && day !== lastDay) rows.push(dayRow(message.id, createdAt ?? ''))
    lastDay = day ?? lastDay
    let own = known.get(message)
    if (!own) {
      own = rowsOfMessage(message)
      known.set(message, own)
    }
    rows.push(...own)
  }
  return rows
}

const days = new Map<string, Row>()

function dayRow(messageId: string, createdAt: string): Row {
  const key = `${messageId} day`
  const found = days.get(key) ?? { key, messageId, kind: 'day' as const, text: dayOf(createdAt) }
  days.set(key, found)
  return found
}

function rowsOfMessage(message: UIMessage): Row[] {
  const { id, role, metadata, parts } = message
  const at = metadata?.createdAt
  if (role === 'user') {
    const files = parts.filter(isFile)
    return [{ key: id, messageId: id, kind: 'user', message, text: textOf(parts), files }]
  }
  let hasText = false
  return parts.flatMap((part, index): Row[] => {
    const place = { key: `${id} ${index}`, messageId: id }
    if (part.type === 'text') {
      if (part.text === '') return []
      const isFirst = !hasText
      hasText = true
      return [{ ...place, kind: 'text', text: part.text, isFirst, at }]
    }
    return rowOfPart(place, part, at)
  })
}

function rowOfPart(place: { key: string; messageId: string }, part: UIPart, at: string | undefined): Row[] {
  if (part.type === 'reasoning') return part.text === '' ? [] : [{ ...place, kind: 'reasoning', text: part.text }]
  if (part.type === 'step-start') return []
  if (isFile(part)) return [{ ...place, kind: 'file', part }]
  if (part.type === 'source-url') return [{ ...place, kind: 'source', url: part.url, title: part.title ?? part.url }]
  if (part.type === 'source-document') return [{ ...place, kind: 'source', url: '', title: part.title }]
  if (isTool(part)) return [{ ...place, kind: 'tool', part }]
  if (part.type === 'data-error') {
    const { message = 'The run failed.', code } = Object((part as { data?: unknown }).data) as { message?: string; code?: string }
    return [{ ...place, kind: 'error', message, code }]
  }
  if (part.type === 'data-signal') {
    const signal = (part as { data: unknown }).data as SignalData
    return [{ ...place, kind: kindOf(signal), signal, at }]
  }
  return [{ ...place, kind: 'data', name: part.type.replace(/^data-/, ''), data: (part as { data?: unknown }).data ?? part }]
}

function kindOf({ type, tagName }: SignalData): 'state' | 'notification' | 'watch' | 'signal' {
  if (tagName === 'watch') return 'watch'
  return type === 'state' || type === 'notification' ? type : 'signal'
}

function isFile(part: UIPart): part is FilePart {
  return part.type === 'file' || part.type === 'reasoning-file'
}

function isTool(part: UIPart): part is ToolPart {
  return part.type.startsWith('tool-')
}

function textOf(parts: readonly UIPart[]): string {
  return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** The contents of a signal as text; parts that are no text as JSON. */
export function contentsOf({ contents }: SignalData): string {
  return typeof contents === 'string' ? contents : Array.isArray(contents) ? textOf(contents as UIPart[]) : JSON.stringify(contents)
}
