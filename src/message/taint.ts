import { isPlainObject } from '../base/json.ts'
import type { MessageContent } from './message.ts'

/*
 * Taint: the metadata of a message or signal names at `taintedBy` where values in it came from that senders of messages from outside
 * chose, such as the channels `sms` and `sms/main`. It is stored with the row, and no prompt contains it.
 */

const none: readonly string[] = []

/** Where values of a row came from that outside senders chose; empty if there are none. */
export function taintOf({ metadata }: Pick<MessageContent, 'metadata'>): readonly string[] {
  if (metadata === undefined) return none
  const signal = isPlainObject(metadata.signal) && isPlainObject(metadata.signal.metadata) ? metadata.signal.metadata.taintedBy : undefined
  if (metadata.taintedBy === undefined && signal === undefined) return none
  return joinTaint(texts(metadata.taintedBy), texts(signal))
}

/** All names of both, each once and sorted. */
export function joinTaint(one: readonly string[], other: readonly string[]): readonly string[] {
  if (other.length === 0 || other === one) return one
  return one.length === 0 && other.length < 2 ? other : [...new Set([...one, ...other])].toSorted()
}

/** The same contents, marked. */
export function withTaint<Content extends Pick<MessageContent, 'metadata'>>(content: Content, taintedBy: readonly string[]): Content {
  if (taintedBy.length === 0) return content
  return { ...content, metadata: { ...content.metadata, taintedBy: [...joinTaint(taintedBy, taintOf(content))] } }
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string' && one !== '') : none
}
