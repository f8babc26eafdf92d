import type { NotificationRecord, NotificationStore } from '../store/contract/notifications.ts'

/** Whoever can send the full text of a record to an agent that runs here. */
export interface NotificationReader {
  knows(agentId: string): boolean
  /** By the clock of its Heed. */
  now(): number
  read(record: NotificationRecord, agentId: string): Promise<void>
}

/** Who reads from a store in this process: two Heeds may share one. */
const readers = new WeakMap<NotificationStore, Set<NotificationReader>>()

export function join(store: NotificationStore, reader: NotificationReader): void {
  const others = readers.get(store)
  if (others) others.add(reader)
  else readers.set(store, new Set([reader]))
}

export function leave(store: NotificationStore, reader: NotificationReader): void {
  readers.get(store)?.delete(reader)
}

export function readerFor(store: NotificationStore, agentId: string): NotificationReader | undefined {
  for (const reader of readers.get(store) ?? []) if (reader.knows(agentId)) return reader
  return undefined
}
