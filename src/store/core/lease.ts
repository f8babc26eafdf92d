import { HeedError } from '../../base/errors.ts'
import { nextThreadStatus, type ThreadEvent } from '../../machine.ts'
import { isChildThreadId, isWorkflowThreadId, threadsAbove } from '../contract/thread-row.ts'
import type { Fence, Scope } from '../contract/threads.ts'
import type { ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

type Threads = Pick<ThreadTables, 'thread'>

export function threadForbidden(threadId: string): HeedError {
  const problem = `Thread ${threadId} belongs to another resource.`
  return new HeedError('thread_forbidden', `${problem} Use a thread of this resource, or another id.`, { details: { threadId } })
}

/** The thread of a scope, if it exists. Throws `thread_forbidden` for the thread of another resource. */
export function findThread(tables: Threads, scope: Scope): ThreadRecord | undefined {
  const thread = tables.thread(scope.threadId)
  if (thread && scope.resourceId !== undefined && thread.resourceId !== scope.resourceId) throw threadForbidden(scope.threadId)
  return thread
}

/** The thread of a scope. Throws `thread_not_found` or `thread_forbidden`. */
export function scopedThread(tables: Threads, scope: Scope): ThreadRecord {
  const thread = findThread(tables, scope)
  if (thread) return thread
  throw new HeedError('thread_not_found', `There is no thread ${scope.threadId}. Create it, or send something to it first.`, {
    details: { threadId: scope.threadId },
  })
}

/** The thread of a fence. Throws `fenced` when the lease is another's. */
export function fencedThread(tables: Threads, fence: Fence): ThreadRecord {
  const thread = leasedThread(tables, fence)
  if (thread) return thread
  const { threadId, owner, epoch } = fence
  const problem = `${owner} no longer has the lease of thread ${threadId} at epoch ${epoch}.`
  throw new HeedError('fenced', `${problem} Stop this run: another process may own the thread.`, { details: { threadId, epoch } })
}

/** Whether the thread is leased to the owner of the fence, at its epoch. */
export function holdsLease(tables: Threads, fence: Fence): boolean {
  return leasedThread(tables, fence) !== undefined
}

function leasedThread(tables: Threads, fence: Fence): ThreadRecord | undefined {
  const thread = tables.thread(fence.threadId)
  return thread && thread.epoch === fence.epoch && thread.owner === fence.owner ? thread : undefined
}

/** Changes the status of a thread. An event that the status does not allow is a bug of Heed, not of the caller. */
export function transitionThread(thread: ThreadRecord, event: ThreadEvent): void {
  const next = nextThreadStatus(thread.status, event)
  if (!next) throw new HeedError('store_failed', `Thread ${thread.id} is ${thread.status}; the event '${event}' is not possible.`)
  thread.status = next
}

/** Gives the lease of a thread to a process. The epoch grows, so that writes of the former owner are rejected with `fenced`. */
export function grantLease(thread: ThreadRecord, event: 'wake' | 'resume' | 'take-over', owner: string): Fence {
  transitionThread(thread, event)
  thread.epoch += 1
  thread.owner = owner
  thread.dueAt = null
  return { threadId: thread.id, owner, epoch: thread.epoch }
}

/** Writes the id of the next run into the thread, so that signals can be routed to it before it begins. */
export function reserveRun(thread: ThreadRecord, runId: string, agentId: string): void {
  thread.runId = runId
  thread.agentId = agentId
  thread.begun = 0
}

/** Releases the lease. With `pending`, the thread is due for another runner. */
export function releaseLease(tables: ThreadTables, thread: ThreadRecord, pending: boolean): void {
  if (thread.status !== 'idle') transitionThread(thread, 'release')
  thread.owner = null
  thread.runId = null
  thread.agentId = null
  thread.begun = 0
  thread.dueAt = pending ? tables.now() : null
}

/**
 * Whether the heartbeat of a process has not expired. One that expires further ahead than twice its length was written before the clock
 * was set back: it counts as expired, since its process may be gone. A process that is alive writes the next one soon.
 *
 * Where the database has a clock of its own, which may jump, the process must also be known to be silent for the length of its heartbeat.
 */
export function isAlive(tables: ThreadTables, owner: string, now = tables.now()): boolean {
  const heartbeat = tables.processes.heartbeat(owner)
  if (!heartbeat) return false
  // Of a clock of this process only the difference counts where the database has its own.
  const ahead = now - tables.now()
  const left = heartbeat.until - (heartbeat.now === undefined ? now : heartbeat.now + ahead)
  if (left >= 0 && left <= 2 * heartbeat.length) return true
  return heartbeat.silentFor !== undefined && heartbeat.silentFor + Math.abs(ahead) < heartbeat.length
}

/** Rejects an id that only a child of another thread may have: the agent that answers there must find no thread of a caller. */
export function checkNewThreadId(id: string, parentId: string | undefined): void {
  if (isWorkflowThreadId(id) && (parentId === undefined || !id.startsWith(`${parentId}/`))) {
    const message = `The thread id '${id}' is reserved for runs of workflows. Choose another id.`
    throw new HeedError('invalid_argument', message, { details: { field: 'threadId', threadId: id } })
  }
  if (!isChildThreadId(id) || (parentId !== undefined && threadsAbove(id)[0] === parentId)) return
  const problem = `The thread id '${id}' is reserved for agents that are called by other agents.`
  throw new HeedError('invalid_argument', `${problem} Choose another id.`, { details: { field: 'threadId', threadId: id } })
}
