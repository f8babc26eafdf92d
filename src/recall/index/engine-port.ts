import type { Connection } from '../../store/sqlite/connection.ts'
import { RecallEngine, type EngineCall } from './engine.ts'
import { WorkerCalls } from './worker-calls.ts'

/** An engine, wherever it runs. */
export interface EnginePort {
  ask<Call extends EngineCall>(call: Call, ...args: Parameters<RecallEngine[Call]>): Promise<ReturnType<RecallEngine[Call]>>
  close(): Promise<void>
}

/** In a thread of its own where there is a file; a database in memory can only be read by the thread that has it. */
export async function openEngine(connection: Connection): Promise<EnginePort> {
  if (connection.path !== undefined) {
    const calls = new WorkerCalls(import.meta.url, 'engine-worker', { path: connection.path })
    return { ask: (call, ...args) => calls.ask(call, args) as Promise<never>, close: () => calls.close() }
  }
  const { besideMessages } = await import('./databases.ts')
  const engine = new RecallEngine(besideMessages(connection.database))
  return {
    async ask(call, ...args) {
      const act = engine[call] as (...given: typeof args) => never
      return act.apply(engine, args)
    },
    close: async () => engine.close(),
  }
}
