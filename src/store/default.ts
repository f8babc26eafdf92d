import type { Logger } from '../base/logger.ts'
import type { Storage } from './contract/storage.ts'
import { realFile } from './real-file.ts'

/** The files that were named in a log. */
const named = new Set<string>()

/** The storage of a program that configures none: a local file, named in one line of the log. Its driver is loaded at the first use. */
export async function defaultStorage(log: Logger['info']): Promise<Storage> {
  const file = realFile('heed.db')
  if (!named.has(file)) log('no storage is configured: threads are stored in the default file', { file })
  named.add(file)
  const { LibSQLStore } = await import('./sqlite/store.ts')
  return new LibSQLStore({ url: 'file:./heed.db' })
}

/** The `storageKey` of the default storage, known without loading its driver. */
export function defaultStorageKey(): string {
  return `file:${realFile('heed.db')}`
}
