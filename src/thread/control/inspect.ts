import type { SignalState } from '../../machine.ts'
import type { MailboxRow, RunRow, Scope, ThreadRow, ThreadStore } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { unlessNew, waitingRows } from '../send/queue.ts'

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

/** The life of one signal, as far as it has come. */
export interface ExplainedSignal {
  id: string
  state: SignalState
  /** Where it was sent when it was accepted. */
  route: MailboxRow['route']
  agentId: string
  acceptedAt: Date
  /** How many signals wait before it, while it is pending. */
  ahead?: number
  runId?: string
  /** The step whose prompt it is in first; none where processors refused it before a model read it. */
  step?: number
  /** How the run went that took it. */
  run?: Pick<RunRow, 'status' | 'step' | 'attempts' | 'error' | 'lost'>
  reason?: string
  /** The processor that refused it, or what was answered to it. */
  processorId?: string
}

/** Accepted, waiting, drained at which step, answered by which run. Null when the thread has no such signal. */
export async function explainSignal(store: ThreadStore, scope: Scope, id: string): Promise<ExplainedSignal | null> {
  const mail = await unlessNew(store.getSignal(scope, id), null)
  if (!mail) return null
  const { state, route, agentId, runId, step, reason } = mail
  const run = runId === undefined ? null : await store.getRun(scope, runId)
  const ahead = state === 'pending' ? (await waitingRows(store, scope)).findIndex((other) => other.id === id) : undefined
  return {
    id,
    state,
    route,
    agentId,
    acceptedAt: new Date(mail.acceptedAt),
    ...(ahead === undefined ? {} : { ahead }),
    ...(runId === undefined ? {} : { runId }),
    ...(step === undefined || (state === 'rejected' && run?.error?.unread === true) ? {} : { step }),
    ...(run ? { run: { status: run.status, step: run.step, attempts: run.attempts, ...(run.error ? { error: run.error } : {}), ...(run.lost ? { lost: run.lost } : {}) } } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(state === 'rejected' && typeof run?.error?.processorId === 'string' ? { processorId: run.error.processorId } : {}),
  }
}
