import type { MessageRow } from '../message/row.ts'
import { isPlainObject } from './json-copy.ts'

/** What a state signal says of itself: its lane, and its place there. */
export interface LanePlace {
  id: string
  mode: 'snapshot' | 'delta'
  cacheKey: string
  version: number
}

/** The place of a state in its lane; nothing for every other row. */
export function laneOf({ role, content }: Pick<MessageRow, 'role' | 'content'>): LanePlace | undefined {
  const signal = role === 'signal' ? content.metadata?.signal : undefined
  if (!isPlainObject(signal) || signal.type !== 'state' || !isPlainObject(signal.metadata)) return undefined
  const { state } = signal.metadata
  if (!isPlainObject(state) || typeof state.id !== 'string' || typeof state.version !== 'number') return undefined
  return { id: state.id, mode: state.mode === 'delta' ? 'delta' : 'snapshot', cacheKey: String(state.cacheKey), version: state.version }
}
