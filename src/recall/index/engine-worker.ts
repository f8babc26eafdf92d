import { workerData } from 'node:worker_threads'
import { openDatabases } from './databases.ts'
import { RecallEngine } from './engine.ts'
import { serveCalls } from './serve-calls.ts'

/** An engine in a thread of its own. */
const { path } = workerData as { path: string }
serveCalls(() => new RecallEngine(openDatabases(path)))
