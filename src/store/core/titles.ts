import type { TitleClaim, WantedTitle } from '../contract/titles.ts'
import type { ThreadRecord } from './records.ts'
import type { ThreadTables } from './tables.ts'

/** Marks a thread that has no title. False when it has one, or a mark, or is part of another thread. */
export function markUntitled(tables: ThreadTables, thread: ThreadRecord, agentId: string, owner: string, until: number): boolean {
  if (thread.title !== '' || thread.parentId !== null || tables.title(thread)) return false
  const taken = until > tables.now()
  tables.putTitle(thread, { agentId, owner: taken ? owner : null, dueAt: until, attempts: taken ? 1 : 0 })
  return taken
}

export function claimTitles(tables: ThreadTables, { owner, now, until, limit, agentIds }: TitleClaim): WantedTitle[] {
  const due = agentIds.flatMap((agentId) => tables.dueTitles(agentId, now, limit)).toSorted((a, b) => a.dueAt - b.dueAt).slice(0, limit)
  return due.flatMap(({ threadId, agentId, attempts }) => {
    const thread = tables.thread(threadId)
    if (!thread) return []
    tables.putTitle(thread, { agentId, owner, dueAt: until, attempts: attempts + 1 })
    return { threadId, agentId, attempts: attempts + 1 }
  })
}

export function returnTitle(tables: ThreadTables, threadId: string, dueAt: number | null): void {
  const thread = tables.thread(threadId)
  const mark = thread && tables.title(thread)
  if (!mark) return
  if (dueAt === null) tables.removeTitle(thread)
  else tables.putTitle(thread, { ...mark, owner: null, dueAt })
}
