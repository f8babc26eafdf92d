import { HeedError } from '../../base/errors.ts'
import type { ThreadClone } from '../contract/messages.ts'
import type { Scope, ThreadRow } from '../contract/threads.ts'
import { mergeTail } from './append.ts'
import { copyLanes } from './lanes.ts'
import { scopedThread } from './lease.ts'
import { withoutLaneMetadata, type ThreadRecord } from './records.ts'
import type { ThreadTables, WantedMessages } from './tables.ts'
import { threadWithLanes } from './threads.ts'
import { copyWorkingMemory } from './working-memory.ts'

/**
 * The suffix of row and message ids in a copy of a thread. It makes them unique across threads: clients change and delete messages by id,
 * without naming the thread that they read them from.
 */
export function copySuffix({ key }: Pick<ThreadRecord, 'key'>): string {
  return `~${key.toString(36)}`
}

export function cloneThread(tables: ThreadTables, scope: Scope, clone: ThreadClone): ThreadRow {
  const source = scopedThread(tables, scope)
  if (tables.thread(clone.id)) {
    throw new HeedError('thread_exists', `Thread ${clone.id} exists already. Choose another id for the copy, or pass none.`, {
      details: { threadId: clone.id },
    })
  }
  const resourceId = clone.resourceId ?? source.resourceId
  const origin = { sourceThreadId: source.id, clonedAt: new Date(clone.now).toISOString() }
  const metadata = JSON.stringify({ ...withoutLaneMetadata(clone.metadata), clone: origin })
  const title = clone.title ?? (source.title === '' ? '' : `Clone of ${source.title}`)
  const copy = tables.addThread({ id: clone.id, resourceId, title, metadata, parentId: null, createdAt: clone.now })
  const wanted = wantedMessages(clone)
  if (wanted) {
    tables.copySomeRows(source, copy, wanted)
    const last = tables.lastRow(copy)
    if (last) Object.assign(copy, { nextSeq: last.seq + 1, ordinal: last.ordinal, turn: last.turn })
  } else {
    // Recall blocks quote messages of the source's resource, which another resource must not see.
    tables.copyAllRows(source, copy, resourceId === source.resourceId)
    const { nextSeq, ordinal, turn, tail, tailOrdinal, tailTurn } = source
    Object.assign(copy, { nextSeq, ordinal, turn, tail, tailOrdinal, tailTurn })
    mergeTail(tables, copy)
  }
  const [last] = tables.edgeStarts(copy, 'newest', 1)
  if (last) copy.metadata = JSON.stringify({ ...withoutLaneMetadata(clone.metadata), clone: { ...origin, lastMessageId: last.messageId } })
  copyLanes(tables, source, copy, copySuffix(copy))
  // Working memory may describe the source's resource, so another resource must not see it.
  if (resourceId === source.resourceId) copyWorkingMemory(tables, source, copy)
  tables.putThread(copy)
  return threadWithLanes(tables, copy)
}

function wantedMessages({ limit, from, to, messageIds }: ThreadClone): WantedMessages | undefined {
  if (limit === undefined && !from && !to && !messageIds) return undefined
  return {
    ...(limit !== undefined && { limit }),
    ...(from && { from: from.getTime() }),
    ...(to && { to: to.getTime() }),
    ...(messageIds && { messageIds }),
  }
}
