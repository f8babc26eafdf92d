import { workerData } from 'node:worker_threads'
import { serveCalls } from '../index/serve-calls.ts'
import { VectorEngine } from './vector-engine.ts'

/** Vectors in a thread of its own: comparing many takes long. */
const { path } = workerData as { path: string }
serveCalls(() => new VectorEngine(path))
