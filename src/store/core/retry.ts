import { HeedError } from '../../base/errors.ts'
import type { Fence, Scope } from '../contract/threads.ts'
import { scopedThread } from './guard.ts'
import { lease, move } from './lease.ts'
import type { RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

export function retryParked(
  tables: ThreadTables, scope: Scope, runId: string, options: { owner?: string; removed?: readonly string[] },
): { agentId: string; fence?: Fence } {
  const thread = scopedThread(tables, scope)
  const run = tables.run(thread, runId)
  if (run?.status !== 'parked') throw refusal(thread, runId, 'it is not parked')
  if (thread.status !== 'idle') throw refusal(thread, runId, 'the thread is active; retry when it is idle')
  if (wentOn(tables, thread, run)) throw refusal(thread, runId, 'the thread went on with other runs; send what it was to answer again')

  for (const id of options.removed ?? []) tables.removeMessage(thread, id)
  run.status = 'running'
  // Not the first attempt: what had begun and may not begin twice is known as interrupted.
  run.attempts = 1
  run.endedAt = null
  run.error = null
  run.sealSeq = thread.nextSeq
  const fence = options.owner === undefined ? undefined : lease(thread, 'wake', options.owner)
  if (!fence) {
    move(thread, 'wake')
    thread.dueAt = tables.now()
  }
  thread.runId = run.runId
  thread.agentId = run.agentId
  thread.begun = 1
  tables.putRun(thread, run)
  tables.putThread(thread)
  return { agentId: run.agentId, ...(fence && { fence }) }
}

function wentOn(tables: ThreadTables, thread: ThreadRecord, { runId, firstSeq }: RunRecord): boolean {
  return tables.rowsFrom(thread, firstSeq).some((row) => row.runId !== null && row.runId !== runId)
}

function refusal({ id }: ThreadRecord, runId: string, why: string): HeedError {
  return new HeedError('run_not_parked', `Run ${runId} of thread ${id} can't be taken up again: ${why}.`, { details: { threadId: id, runId } })
}
