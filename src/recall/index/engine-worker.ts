import { workerData } from 'node:worker_threads'
import { CollectionCache } from './collection-cache.ts'
import { openDatabases } from './databases.ts'
import { RecallEngine } from './engine.ts'
import { serveCalls } from './worker-calls.ts'

/** The entry of the worker thread that runs the engine of a database file. */
const { path, memoryBytes } = workerData as { path: string; memoryBytes?: number }
serveCalls(() => {
  const databases = openDatabases(path)
  return new RecallEngine(databases, new CollectionCache(databases, memoryBytes))
})
