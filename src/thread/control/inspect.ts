import type { SignalState } from '../../machine.ts'
import type { MailboxRow, RunRow, Scope, ThreadRow, ThreadStore } from '../../store/contract/threads.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'
import { unlessMissing, pendingRows } from '../send/queue.ts'

/** The active or suspended run of a thread. */
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

/** The threads with an active or suspended run, of any agent. */
export async function listActiveThreads(
  runtime: ThreadRuntime, { resourceId, limit = 100 }: { resourceId?: string; limit?: number },
): Promise<ThreadRow[]> {
  await runtime.open()
  return (await runtime.store.listThreads({ status: ['running', 'suspended'], limit, ...(resourceId === undefined ? {} : { resourceId }) }))
    .threads
}

/** The state of one signal and its history. */
export interface ExplainedSignal {
  id: string
  state: SignalState
  /** The route that was chosen when it was accepted. */
  route: MailboxRow['route']
  agentId: string
  acceptedAt: Date
  /** How many signals are before it, while it is pending. */
  ahead?: number
  runId?: string
  /** The first step whose prompt contains it; absent where the run ended before a model read it. */
  step?: number
  /** The run that drained it. */
  run?: Pick<RunRow, 'status' | 'step' | 'attempts' | 'error' | 'lost'>
  reason?: string
  /** The processor that rejected it or the answer to it. */
  processorId?: string
}

/** Whether a signal is pending, at which step it was drained, and which run answered it. Null when the thread has no such signal. */
export async function explainSignal(store: ThreadStore, scope: Scope, id: string): Promise<ExplainedSignal | null> {
  const mail = await unlessMissing(store.getSignal(scope, id), null)
  if (!mail) return null
  const { state, route, agentId, runId, step, reason } = mail
  const run = runId === undefined ? null : await store.getRun(scope, runId)
  const ahead = state === 'pending' ? (await pendingRows(store, scope)).findIndex((other) => other.id === id) : undefined
  return {
    id,
    state,
    route,
    agentId,
    acceptedAt: new Date(mail.acceptedAt),
    ...(ahead === undefined ? {} : { ahead }),
    ...(runId === undefined ? {} : { runId }),
    ...(step === undefined || (run?.error?.unread === true && reason !== undefined) ? {} : { step }),
    ...(run
      ? {
          run: {
            status: run.status,
            step: run.step,
            attempts: run.attempts,
            ...(run.error ? { error: run.error } : {}),
            ...(run.lost ? { lost: run.lost } : {}),
          },
        }
      : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(state === 'rejected' && typeof run?.error?.processorId === 'string' ? { processorId: run.error.processorId } : {}),
  }
}
