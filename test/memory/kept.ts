import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach } from 'vitest'
import { InMemoryStore, Memory, type Message, type MemoryConfig, type ThreadStore } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-memory-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0
export const newFile = () => join(folder, `${count++}.db`)

const opened: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  // What was opened last may use what was opened before it.
  for (const one of opened.splice(0).toReversed()) await one.close()
})
export function kept<Store extends { close(): Promise<void> }>(store: Store): Store {
  opened.push(store)
  return store
}

export const stores: ReadonlyArray<{ name: string; store(): ThreadStore }> = [
  { name: 'in memory', store: () => kept(new InMemoryStore()) },
  { name: 'libSQL', store: () => kept(new LibSQLStore({ url: `file:${newFile()}` })) },
]

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
