import type { Scope, ThreadRow } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

/** What is active or suspended on a thread. */
export interface ActiveRun {
  runId: string
  agentId: string
  status: 'running' | 'suspended'
}

export async function activeRun(runtime: ThreadRuntime, scope: Scope): Promise<ActiveRun | null> {
  await runtime.open()
  const thread = await runtime.store.getThread(scope)
  if (!thread || thread.status === 'idle' || thread.runId === undefined || thread.agentId === undefined) return null
  return { runId: thread.runId, agentId: thread.agentId, status: thread.status }
}

/** Those on which something is active or suspended, of any agent. */
export async function listActiveThreads(runtime: ThreadRuntime, { resourceId, limit = 100 }: { resourceId?: string; limit?: number }): Promise<ThreadRow[]> {
  await runtime.open()
  return (await runtime.store.listThreads({ status: ['running', 'suspended'], limit, ...(resourceId === undefined ? {} : { resourceId }) })).threads
}
