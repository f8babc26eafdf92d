import { workerData } from 'node:worker_threads'
import { serveCalls } from '../index/worker-calls.ts'
import { VectorEngine } from './vector-engine.ts'

/** The entry of the worker thread: comparing many vectors would block the event loop. */
const { path } = workerData as { path: string }
serveCalls(() => new VectorEngine(path))
