import { HeedError } from '../../base/errors.ts'
import type { Fence, Scope } from '../contract/threads.ts'
import type { ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

type Threads = Pick<ThreadTables, 'thread'>

export function forbidden(threadId: string): HeedError {
  return new HeedError('thread_forbidden', `Thread ${threadId} belongs to another resource. Use a thread of this resource, or another id.`, {
    details: { threadId },
  })
}

/** The thread of a scope, if there is one. */
export function findThread(tables: Threads, scope: Scope): ThreadRecord | undefined {
  const thread = tables.thread(scope.threadId)
  if (thread && scope.resourceId !== undefined && thread.resourceId !== scope.resourceId) throw forbidden(scope.threadId)
  return thread
}

export function scopedThread(tables: Threads, scope: Scope): ThreadRecord {
  const thread = findThread(tables, scope)
  if (thread) return thread
  throw new HeedError('thread_not_found', `There is no thread ${scope.threadId}. Create it, or send something to it first.`, {
    details: { threadId: scope.threadId },
  })
}

/** Whether the thread is leased to the owner of the fence, at its epoch. */
export function holds(tables: Threads, fence: Fence): boolean {
  return heldThread(tables, fence) !== undefined
}

function heldThread(tables: Threads, fence: Fence): ThreadRecord | undefined {
  const thread = tables.thread(fence.threadId)
  return thread && thread.epoch === fence.epoch && thread.owner === fence.owner ? thread : undefined
}

export function fencedThread(tables: Threads, fence: Fence): ThreadRecord {
  const thread = heldThread(tables, fence)
  if (thread) return thread
  throw new HeedError('fenced', `Thread ${fence.threadId} is no longer held by ${fence.owner} at epoch ${fence.epoch}. Stop this run: its owner is another.`, {
    details: { threadId: fence.threadId, epoch: fence.epoch },
  })
}
