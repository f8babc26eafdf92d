import { workerData } from 'node:worker_threads'
import { openDatabases } from './databases.ts'
import { RecallEngine } from './engine.ts'
import { serveCalls } from './worker-calls.ts'

/** The entry of the worker thread that runs the engine of a database file. */
const { path } = workerData as { path: string }
serveCalls(() => new RecallEngine(openDatabases(path)))
