import { HeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import type { CallDecision, Decided, MadeDecision, RunDecision, SuspendedCall } from '../contract/threads.ts'
import type { RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/**
 * The mailbox id of a decision that has an id. Such decisions are kept in the mailbox for as long as signals that their run took. The
 * prefix lets a signal and a decision have the same key.
 */
const decisionMailId = (id: string) => `decision:${id}`

/** The mailbox id of the decision about a request: it tells later deciders what was decided. */
const requestMailId = (approvalId: string) => `decided:${approvalId}`

/** The mailbox id that tells that a request of a call was decided in its run. A later step may have a call with the same id. */
const callMailId = (runId: string, toolCallId: string) => `decided-call:${runId}/${toolCallId}`

interface StoredDecision {
  said?: string
  toolCallId?: string
  made?: MadeDecision
}

/** The decision as it is stored, with the time of the store's clock. */
export function madeDecision(tables: ThreadTables, { request }: SuspendedCall, { approved, reason, by }: CallDecision): MadeDecision {
  return {
    ...(request ? { approvalId: request.id } : {}),
    ...(approved === undefined ? {} : { approved }),
    ...(reason === undefined ? {} : { reason }),
    ...(by === undefined ? {} : { by }),
    at: tables.now(),
  }
}

/** The result of an earlier decision with the same id. Throws `idempotency_key_reused` if that decision was different. */
export function earlierDecision(tables: ThreadTables, thread: ThreadRecord, decision: CallDecision): Decided | undefined {
  const mail = decision.id === undefined ? undefined : tables.mail(thread, decisionMailId(decision.id))
  if (!mail) return undefined
  const { said, toolCallId, made } = JSON.parse(mail.options ?? '{}') as StoredDecision
  if (said !== encodeDecision(decision) || toolCallId === undefined || made === undefined || mail.runId === null) {
    throw new HeedError('idempotency_key_reused', 'This id was used for another decision on this thread. Use a new id for each decision.', {
      details: { field: 'id' },
    })
  }
  return { runId: mail.runId, toolCallId, agentId: mail.agentId, made, parents: [], children: [] }
}

/** Adds a decision to those of the run, for people who ask who decided. The caller puts the run. */
export function addDecision(run: RunRecord, { toolCallId, toolName, kind }: SuspendedCall, made: MadeDecision): void {
  const earlier = run.decisions === null ? [] : (JSON.parse(run.decisions) as RunDecision[])
  run.decisions = JSON.stringify([...earlier, { toolCallId, toolName, kind, ...made }])
}

/** Keeps a decision for its repeats and for later deciders. The caller puts the thread. */
export function recordDecision(
  tables: ThreadTables, thread: ThreadRecord, run: RunRecord, decision: CallDecision, { toolCallId, made }: Decided,
): void {
  const stored: StoredDecision = { said: encodeDecision(decision), toolCallId, made }
  if (decision.id !== undefined) addRecord(tables, thread, run, decisionMailId(decision.id), stored)
  recordMade(tables, thread, run, toolCallId, made)
}

/** Keeps what was decided about a request of a call, for later deciders on this thread. The caller puts the thread. */
export function recordMade(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, toolCallId: string, made: MadeDecision): void {
  if (made.approvalId === undefined) return
  addRecord(tables, thread, run, requestMailId(made.approvalId), { made })
  if (!wasDecided(tables, thread, run, toolCallId)) addRecord(tables, thread, run, callMailId(run.runId, toolCallId), {})
}

/** Whether a request of a call with this id was decided in the run: the id does not name a later request. */
export function wasDecided(tables: ThreadTables, thread: ThreadRecord, { runId }: RunRecord, toolCallId: string): boolean {
  return tables.mail(thread, callMailId(runId, toolCallId)) !== undefined
}

function addRecord(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, id: string, stored: StoredDecision): void {
  tables.addMail(thread, {
    ord: thread.nextOrd,
    id,
    agentId: run.agentId,
    route: 'deliver',
    kind: 'enter',
    state: 'consumed',
    runId: run.runId,
    startRunId: run.runId,
    step: run.step,
    rows: '[]',
    options: JSON.stringify(stored),
    boundTo: null,
    reason: null,
    acceptedAt: tables.now(),
    drainedAt: null,
    drainedBy: null,
    epoch: null,
    settledAt: null,
  })
  thread.nextOrd += 1
}

/** Equal for decisions with equal fields. */
function encodeDecision({ runId, step, toolCallId, approvalId, approved, reason, resumeData }: CallDecision): string {
  return orderedJSON([runId, step, toolCallId, approvalId, approved, reason, resumeData])
}

/** The decision that was made about the request, or about the call in the step that the thread is in. */
export function earlierMade(tables: ThreadTables, thread: ThreadRecord, decision: CallDecision): MadeDecision | undefined {
  const { approvalId, toolCallId, runId } = decision
  const id = approvalId ?? requestOf(tables, thread, runId ?? thread.runId, toolCallId)
  return id === undefined ? undefined : madeAbout(tables, thread, id)
}

/** The decision that was made about a request, as this thread keeps it. */
export function madeAbout(tables: ThreadTables, thread: ThreadRecord, approvalId: string): MadeDecision | undefined {
  const mail = tables.mail(thread, requestMailId(approvalId))
  return mail ? (JSON.parse(mail.options ?? '{}') as StoredDecision).made : undefined
}

function requestOf(tables: ThreadTables, thread: ThreadRecord, runId: string | null, toolCallId: string | undefined): string | undefined {
  const run = runId === null || toolCallId === undefined ? undefined : tables.run(thread, runId)
  const calls = run ? (JSON.parse(run.suspended) as SuspendedCall[]) : []
  return calls.find((call) => call.toolCallId === toolCallId && call.decision)?.request?.id
}
