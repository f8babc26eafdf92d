import { HeedError } from '../../base/errors.ts'
import { nextThreadStatus, type ThreadEvent } from '../../machine.ts'
import type { Fence } from '../contract/threads.ts'
import type { ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

export function move(thread: ThreadRecord, event: ThreadEvent): void {
  const next = nextThreadStatus(thread.status, event)
  if (!next) throw new HeedError('store_failed', `Thread ${thread.id} is ${thread.status}: it can't ${event}.`)
  thread.status = next
}

/** Gives the thread to a process. Its epoch grows, so that whoever held it before is refused from now on. */
export function lease(thread: ThreadRecord, event: 'wake' | 'resume' | 'take-over', owner: string): Fence {
  move(thread, event)
  thread.epoch += 1
  thread.owner = owner
  thread.dueAt = null
  return { threadId: thread.id, owner, epoch: thread.epoch }
}

/** Names the run that is to come, for those who wait to enter it. */
export function promise(thread: ThreadRecord, runId: string, agentId: string): void {
  thread.runId = runId
  thread.agentId = agentId
  thread.begun = 0
}

/** Nobody runs the thread any more; `waiting` says that somebody should. */
export function release(tables: ThreadTables, thread: ThreadRecord, waiting: boolean): void {
  if (thread.status !== 'idle') move(thread, 'release')
  thread.owner = null
  thread.runId = null
  thread.agentId = null
  thread.begun = 0
  thread.dueAt = waiting ? tables.now() : null
}

export function isAlive(tables: ThreadTables, owner: string): boolean {
  const until = tables.aliveUntil(owner)
  return until !== undefined && until >= tables.now()
}
