import type { MessageContent } from './message.ts'
import { firstText, isRaw } from './read/raw.ts'

/** What a signal's message keeps of it beside its parts, as far as a reader of messages needs it. */
export interface SignalView {
  type: string
  tagName: string
  attributes?: Record<string, unknown>
  metadata?: Record<string, unknown>
}

const olderTypes: Readonly<Record<string, string>> = { 'user-message': 'user', 'system-reminder': 'reactive' }

/** The record at `content.metadata.signal`. Messages of older writers name the type only beside the content. */
export function signalOf({ type, content }: { type?: string; content: MessageContent }): SignalView {
  const record = isRaw(content.metadata?.signal) ? content.metadata.signal : {}
  const written = firstText(record.type, type) ?? 'user'
  return {
    type: today(written),
    tagName: firstText(record.tagName, type) ?? written,
    ...(isRaw(record.attributes) && { attributes: record.attributes }),
    ...(isRaw(record.metadata) && { metadata: record.metadata }),
  }
}

/** It was for one run: no display shows it, and nothing finds it. */
export function isTransient({ metadata }: Pick<MessageContent, 'metadata'>): boolean {
  const record = metadata?.signal
  return isRaw(record) && record.transient === true
}

/** Its type alone. */
export function signalType({ type, content }: { type?: string; content: MessageContent }): string {
  const record = content.metadata?.signal
  return today(firstText(isRaw(record) ? record.type : undefined, type) ?? 'user')
}

function today(type: string): string {
  return olderTypes[type] ?? type
}
