import { HeedError } from '../../base/errors.ts'
import type { Scope, ThreadRow } from '../contract/threads.ts'
import type { ThreadClone } from '../contract/messages.ts'
import { settleTail } from './append.ts'
import { describedThread, untracked } from './decode.ts'
import { scopedThread } from './guard.ts'
import { copyLanes } from './lanes.ts'
import { threadsBelow } from './threads.ts'
import type { ThreadTables, WantedMessages } from './tables.ts'
import { copyWorkingMemory } from './working-memory.ts'

export function cloneThread(tables: ThreadTables, scope: Scope, clone: ThreadClone): ThreadRow {
  const source = scopedThread(tables, scope)
  if (tables.thread(clone.id)) {
    throw new HeedError('thread_exists', `There is a thread ${clone.id} already. Choose another id for the copy, or none.`, { details: { threadId: clone.id } })
  }
  const resourceId = clone.resourceId ?? source.resourceId
  const about = { sourceThreadId: source.id, clonedAt: new Date(clone.now).toISOString() }
  const metadata = JSON.stringify({ ...untracked(clone.metadata), clone: about })
  const title = clone.title ?? (source.title === '' ? '' : `Clone of ${source.title}`)
  const copy = tables.addThread({ id: clone.id, resourceId, title, metadata, parentId: null, createdAt: clone.now })
  const wanted = wantedOf(clone)
  if (wanted) {
    tables.copySomeRows(source, copy, wanted)
    const last = tables.lastRow(copy)
    if (last) Object.assign(copy, { nextSeq: last.seq + 1, ordinal: last.ordinal, turn: last.turn })
  } else {
    // What was recalled for one resource is not another's to see.
    tables.copyAllRows(source, copy, resourceId === source.resourceId)
    const { nextSeq, ordinal, turn, tail, tailOrdinal, tailTurn } = source
    Object.assign(copy, { nextSeq, ordinal, turn, tail, tailOrdinal, tailTurn })
    settleTail(tables, copy)
  }
  const [last] = tables.edgeStarts(copy, 'newest', 1)
  if (last) copy.metadata = JSON.stringify({ ...untracked(clone.metadata), clone: { ...about, lastMessageId: last.messageId } })
  copyLanes(tables, source, copy)
  // Notes about one resource are not another's to see.
  if (resourceId === source.resourceId) copyWorkingMemory(tables, source, copy)
  tables.putThread(copy)
  return describedThread(tables, copy)
}

function wantedOf({ limit, from, to, messageIds }: ThreadClone): WantedMessages | undefined {
  if (limit === undefined && !from && !to && !messageIds) return undefined
  return {
    ...(limit !== undefined && { limit }),
    ...(from && { from: from.getTime() }),
    ...(to && { to: to.getTime() }),
    ...(messageIds && { messageIds }),
  }
}

export function transferThread(tables: ThreadTables, scope: Scope, resourceId: string): ThreadRow {
  const thread = scopedThread(tables, scope)
  if (thread.status !== 'idle') {
    throw new HeedError('thread_active', `Thread ${thread.id} is ${thread.status}. Transfer it when nothing runs on it.`, { details: { threadId: thread.id }, retryable: true })
  }
  if (thread.resourceId === resourceId) return describedThread(tables, thread)
  for (const child of threadsBelow(tables, thread)) tables.transferThread(child, resourceId)
  return describedThread(tables, tables.transferThread(thread, resourceId))
}
