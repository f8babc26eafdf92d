import type { MailboxRow, RunRow, Scope, ThreadStore } from '../../store/contract/threads.ts'
import type { SignalState } from '../../machine.ts'
import { unlessNew } from '../watch/new-thread.ts'
import { waitingRows } from '../send/queue.ts'

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
