import type { Storage } from './contract/storage.ts'
import { realFile } from './real-file.ts'

/** The storage of a program that configures none: a local file. Its driver is loaded when the storage is first used. */
export async function defaultStorage(): Promise<Storage> {
  const { LibSQLStore } = await import('./sqlite/store.ts')
  return new LibSQLStore({ url: 'file:./heed.db' })
}

/** The `storageKey` of the default storage, known without loading its driver. */
export function defaultStorageKey(): string {
  return `file:${realFile('heed.db')}`
}
