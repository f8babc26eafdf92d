import type { ChildCall, SuspendedCall } from '../contract/threads.ts'
import { move } from './lease.ts'
import type { RunRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/**
 * Runs that wait for each other. A call that asked another agent waits for as long as that agent's run waits for somebody; both sides
 * look at the other in their own transaction, so that neither can wait for one that went on.
 */

/** The run that waits on a thread, if it is this one. */
export function suspendedRun(tables: ThreadTables, thread: ThreadRecord, runId?: string): RunRecord | undefined {
  if (thread.status !== 'suspended' || thread.runId === null || (runId !== undefined && runId !== thread.runId)) return undefined
  return tables.run(thread, thread.runId)
}

/** The calls as they are to be kept: those whose child waits no longer are decided by that. A child that is kept elsewhere waits. */
export function withChildren(tables: ThreadTables, calls: readonly SuspendedCall[]): SuspendedCall[] {
  return calls.map((call) => (call.child && !waits(tables, call.child) ? { ...call, decision: {} } : call))
}

function waits(tables: ThreadTables, { threadId, runId, step, toolCallId }: ChildCall): boolean {
  const thread = tables.thread(threadId)
  if (!thread) return true
  const run = suspendedRun(tables, thread, runId)
  return run !== undefined && run.step === step && openCalls(run).some((call) => call.toolCallId === toolCallId)
}

function openCalls(run: RunRecord): SuspendedCall[] {
  return (JSON.parse(run.suspended) as SuspendedCall[]).filter((call) => !call.decision)
}

/** A run whose calls are all decided. Without an owner it is due for whoever can run it. */
export function goOn(tables: ThreadTables, thread: ThreadRecord, run: RunRecord): void {
  run.status = 'running'
  run.attempts = 0
  if (thread.status === 'suspended') {
    move(thread, 'resume')
    thread.dueAt = tables.now()
  }
  run.epoch = thread.epoch
  tables.putThread(thread)
  tables.putRun(thread, run)
}

/** Lets the calls above go on that waited for this one, or for any of the run. Answers the threads that are due by it. */
export function resumeParents(tables: ThreadTables, thread: ThreadRecord, child: { runId: string; toolCallId?: string }): string[] {
  const parent = thread.parentId === null ? undefined : tables.thread(thread.parentId)
  const run = parent?.resourceId === thread.resourceId ? suspendedRun(tables, parent) : undefined
  if (!parent || !run) return []
  const calls = JSON.parse(run.suspended) as SuspendedCall[]
  const call = calls.find((other) => !other.decision && isChild(other.child, thread.id, child))
  if (!call) return []
  call.decision = {}
  run.suspended = JSON.stringify(calls)
  const above = { runId: run.runId, toolCallId: call.toolCallId }
  if (calls.some((other) => !other.decision)) {
    tables.putRun(parent, run)
    return resumeParents(tables, parent, above)
  }
  goOn(tables, parent, run)
  return [parent.id, ...resumeParents(tables, parent, above)]
}

function isChild(call: ChildCall | undefined, threadId: string, { runId, toolCallId }: { runId: string; toolCallId?: string }): boolean {
  return call?.threadId === threadId && call.runId === runId && (toolCallId === undefined || call.toolCallId === toolCallId)
}
