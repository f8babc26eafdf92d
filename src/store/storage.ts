import { HeedError } from '../errors.ts'
import type { ThreadStore } from './contract.ts'

/** What a program passes as `storage`: a store of threads, or something that has one as its `memory` domain. */
export type Storage = ThreadStore | { getStore(domain: 'memory'): ThreadStore | Promise<ThreadStore | undefined> | undefined }

export async function threadStoreOf(storage: Storage): Promise<ThreadStore> {
  const store = 'getStore' in storage ? await storage.getStore('memory') : storage
  if (!store) throw new HeedError('invalid_argument', "The storage has no 'memory' domain. Give it one, or a default.")
  return store
}
