import { HeedError } from '../../errors.ts'
import type { Fence, Scope } from '../contract.ts'
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

export function fencedThread(tables: Threads, fence: Fence): ThreadRecord {
  const thread = tables.thread(fence.threadId)
  if (thread && thread.epoch === fence.epoch && thread.owner === fence.owner) return thread
  throw new HeedError('fenced', `Thread ${fence.threadId} is no longer held by ${fence.owner} at epoch ${fence.epoch}. Stop this run: its owner is another.`, {
    details: { threadId: fence.threadId, epoch: fence.epoch },
  })
}
