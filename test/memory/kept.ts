import { expect, onTestFinished } from 'vitest'
import { Memory, type Message, type MemoryConfig, type ThreadStore } from '../../src/index.ts'
import { storeKinds } from '../thread/places.ts'

/** Closed after the test: what was opened last first, since it may use what was opened before it. */
export function kept<Store extends { close(): Promise<void> }>(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}

/** Each store is on a database of its own. */
export const stores: ReadonlyArray<{ name: string; store(): ThreadStore }> = storeKinds().map(({ name, store }) => ({ name, store: () => kept(store()) }))

export function memoryOn(store: ThreadStore, config: MemoryConfig = {}): Memory {
  return new Memory({ storage: store, ...config })
}

export const instant = new Date('2026-03-01T12:00:00Z')

export function said(id: string, more: Partial<Message> = {}): Message {
  return { id, role: 'user', createdAt: instant, content: { format: 2, parts: [{ type: 'text', text: id }] }, ...more }
}

/** m0, m1, … a minute apart. */
export function conversation(length: number, from = instant): Message[] {
  return Array.from({ length }, (_, index) => said(`m${index}`, { role: index % 2 === 0 ? 'user' : 'assistant', createdAt: new Date(from.getTime() + index * 60_000) }))
}

export function ids(list: ReadonlyArray<{ id: string }>): string {
  return list.map(({ id }) => id).join(' ')
}

/** Of a copy: the ids as its source has them. */
export function sourceIds(list: ReadonlyArray<{ id: string }>): string {
  return ids(list).replaceAll(/~\w+/g, '')
}

/** Waits until all messages are indexed and have vectors. Before they are indexed, an embedder has no passage to embed. */
export async function allIsEmbedded(memory: Memory): Promise<void> {
  await expect.poll(async () => {
    const { pending, rebuilding, embedders: [first] } = await memory.recallStatus()
    return { pending, rebuilding, complete: first?.complete }
  }).toEqual({ pending: 0, rebuilding: undefined, complete: true })
}
