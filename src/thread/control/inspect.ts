import type { SignalState } from '../../machine.ts'
import { createdSignal, rowToSignal } from '../../signals/conversions.ts'
import type { CreatedAgentSignal } from '../../signals/signal.ts'
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
  /** When a run took it, and the process and the epoch of the lease that it was taken under. */
  drainedAt?: Date
  owner?: string
  epoch?: number
  /** When it got its final state: its run answered or rejected it, or it was cancelled. */
  settledAt?: Date
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

/** A signal of a thread, pending or not. */
export interface ListedSignal extends Omit<ExplainedSignal, 'ahead' | 'run' | 'processorId'> {
  /** Its place in the order of acceptance. */
  ord: number
  kind: 'enter' | 'turn'
  /** Absent for a `generate()` or `stream()`, and when it was deleted. */
  signal?: CreatedAgentSignal
}

/** The signals of a thread, newest first, below the place `before`. */
export async function listThreadSignals(
  runtime: ThreadRuntime, scope: Scope,
  { states, limit, before = Number.MAX_SAFE_INTEGER }: { states?: SignalState[]; limit: number; before?: number },
): Promise<{ signals: ListedSignal[]; more: boolean }> {
  await runtime.open()
  const found = await runtime.store.listSignals(scope, { before, limit: limit + 1, ...(states && { states }) })
  return { signals: found.slice(0, limit).map(listedSignal), more: found.length > limit }
}

function listedSignal(mail: MailboxRow): ListedSignal {
  const { id, ord, kind, state, route, agentId, runId, step, reason, rows: [row] } = mail
  return {
    id,
    ord,
    kind,
    state,
    route,
    agentId,
    acceptedAt: new Date(mail.acceptedAt),
    ...timesOf(mail),
    ...(runId === undefined ? {} : { runId }),
    ...(step === undefined ? {} : { step }),
    ...(reason === undefined ? {} : { reason }),
    ...(row?.role === 'signal' ? { signal: createdSignal(rowToSignal(row)) } : {}),
  }
}

type SignalTimes = Pick<ExplainedSignal, 'drainedAt' | 'owner' | 'epoch' | 'settledAt'>

function timesOf({ drainedAt, drainedBy, epoch, settledAt }: MailboxRow): SignalTimes {
  return {
    ...(drainedAt === undefined ? {} : { drainedAt: new Date(drainedAt) }),
    ...(drainedBy === undefined ? {} : { owner: drainedBy }),
    ...(epoch === undefined ? {} : { epoch }),
    ...(settledAt === undefined ? {} : { settledAt: new Date(settledAt) }),
  }
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
    ...timesOf(mail),
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
