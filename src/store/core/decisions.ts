import { HeedError } from '../../base/errors.ts'
import { orderedJSON } from '../../base/json.ts'
import type { CallDecision, Decided } from '../contract/threads.ts'
import type { RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/**
 * Decisions that have an id are kept like signals that their run took: in the mailbox, for as long as those. Their ids have a beginning of
 * their own, so that a signal and a decision may carry the same key.
 */
const mailId = (id: string) => `decision:${id}`

/** What is answered to a decision that was made before. */
export function firstDecision(tables: ThreadTables, thread: ThreadRecord, decision: CallDecision): Decided | undefined {
  const mail = decision.id === undefined ? undefined : tables.mail(thread, mailId(decision.id))
  if (!mail) return undefined
  const { said, toolCallId } = JSON.parse(mail.options ?? '{}') as { said?: string; toolCallId?: string }
  if (said !== essence(decision) || toolCallId === undefined || mail.runId === null) {
    throw new HeedError('idempotency_key_reused', 'This id was used for another decision on this thread. Take a new one for each decision.', { details: { field: 'id' } })
  }
  return { runId: mail.runId, toolCallId, agentId: mail.agentId, parents: [] }
}

/** The thread is put by the caller. */
export function keepDecision(tables: ThreadTables, thread: ThreadRecord, run: RunRecord, decision: CallDecision, { toolCallId }: Decided): void {
  if (decision.id === undefined) return
  tables.addMail(thread, {
    ord: thread.nextOrd,
    id: mailId(decision.id),
    agentId: run.agentId,
    route: 'deliver',
    kind: 'enter',
    state: 'consumed',
    runId: run.runId,
    startRunId: run.runId,
    step: run.step,
    rows: '[]',
    options: JSON.stringify({ said: essence(decision), toolCallId }),
    boundTo: null,
    reason: null,
    acceptedAt: tables.now(),
  })
  thread.nextOrd += 1
}

/** What was decided, as it was said. */
function essence({ runId, step, toolCallId, approved, reason, resumeData }: CallDecision): string {
  return orderedJSON([runId, step, toolCallId, approved, reason, resumeData])
}
