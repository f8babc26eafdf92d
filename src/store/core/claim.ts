import type { Claimed, Fence } from '../contract/threads.ts'
import { isAlive, lease, promise, release } from './lease.ts'
import type { MailRecord, ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'
import { cancelMail, runnable, startingRows } from './waiting.ts'

export function claimThread(tables: ThreadTables, threadId: string, owner: string, agentIds?: readonly string[], again?: Fence): Claimed | null {
  const thread = tables.thread(threadId)
  if (!thread || thread.status === 'suspended') return null
  const mine = again !== undefined && thread.owner === again.owner && thread.epoch === again.epoch
  if (thread.owner !== null && !mine && isAlive(tables, thread.owner)) return null
  if (thread.begun === 1 && thread.agentId !== null) return takeOver(tables, thread, thread.agentId, owner, agentIds)

  const pending = livingPending(tables, thread, owner)
  const waiting = runnable(pending, owner, agentIds)
  const start = startingRows(waiting, thread.runId)
  const agentId = start?.rows[0]?.agentId
  if (!start || agentId === undefined) {
    const vain = thread.status === 'idle' && thread.dueAt === null && pending.length === 0
    if (!vain) {
      release(tables, thread, pending.length > 0)
      tables.putThread(thread)
    }
    return null
  }
  const fence = lease(thread, thread.status === 'idle' ? 'wake' : 'take-over', owner)
  promise(thread, start.runId, agentId)
  tables.putThread(thread)
  return { fence, agentId, takenOver: false }
}

function takeOver(tables: ThreadTables, thread: ThreadRecord, agentId: string, owner: string, agentIds: readonly string[] | undefined): Claimed | null {
  if (agentIds && !agentIds.includes(agentId)) return null
  const fence = lease(thread, 'take-over', owner)
  tables.putThread(thread)
  return { fence, agentId, takenOver: true }
}

/** What waits for a process that still lives, or for any. The caller of a row that is bound to another one went with its process. */
function livingPending(tables: ThreadTables, thread: ThreadRecord, owner: string): MailRecord[] {
  return tables.pending(thread).filter((mail) => {
    if (mail.boundTo === null || mail.boundTo === owner || isAlive(tables, mail.boundTo)) return true
    cancelMail(tables, thread, mail, 'The process that called is gone.')
    return false
  })
}

export function resign(tables: ThreadTables, owner: string): void {
  tables.handOver(owner)
  tables.cancelBound(owner, 'The process that called ended before this began.')
  tables.removeProcess(owner)
}
