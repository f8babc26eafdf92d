import { realFile } from './real-file.ts'
import type { Storage } from './contract/storage.ts'

/** A local file, so that programs remember without any configuration. Its driver is loaded when it is first needed. */
export async function defaultStorage(): Promise<Storage> {
  const { LibSQLStore } = await import('./sqlite/store.ts')
  return new LibSQLStore({ url: 'file:./heed.db' })
}

/** The place that it names. */
export function defaultPlace(): string {
  return `file:${realFile('heed.db')}`
}
