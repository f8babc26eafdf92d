import { isObject } from '../base/json.ts'
import type { MessageContent } from './message.ts'
import { firstString } from './read/raw.ts'

/** The fields of a signal that its message stores beside the parts, for readers of messages. */
export interface SignalView {
  type: string
  tagName: string
  attributes?: Record<string, unknown>
  metadata?: Record<string, unknown>
}

const olderTypes: Readonly<Record<string, string>> = { 'user-message': 'user', 'system-reminder': 'reactive' }

/** The record at `content.metadata.signal`. Messages of older writers have the type only beside the content. */
export function signalOf({ type, content }: { type?: string; content: MessageContent }): SignalView {
  const record = isObject(content.metadata?.signal) ? content.metadata.signal : {}
  const storedType = firstString(record.type, type) ?? 'user'
  return {
    type: currentType(storedType),
    tagName: firstString(record.tagName, type) ?? storedType,
    ...(isObject(record.attributes) && { attributes: record.attributes }),
    ...(isObject(record.metadata) && { metadata: record.metadata }),
  }
}

/** True for a signal that is hidden from readers and from recall. */
export function isTransient({ metadata }: Pick<MessageContent, 'metadata'>): boolean {
  const record = metadata?.signal
  return isObject(record) && record.transient === true
}

/** The type of `signalOf`, without building the rest. */
export function signalType({ type, content }: { type?: string; content: MessageContent }): string {
  const record = content.metadata?.signal
  return currentType(firstString(isObject(record) ? record.type : undefined, type) ?? 'user')
}

function currentType(type: string): string {
  return olderTypes[type] ?? type
}
