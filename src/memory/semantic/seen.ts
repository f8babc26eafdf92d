import type { MessageRow } from '../../message/row.ts'
import { isAnswer, isSent } from '../../run/loop/unanswered.ts'
import type { Scope, ThreadStore } from '../../store/contract/threads.ts'
import type { RecalledPassage } from './block.ts'

const page = 50

/**
 * Passages without what was sent to other threads and no model has answered since: processors of input see it when a run of its own thread
 * begins, and no other run may bring it before a model sooner. What was sent to the thread itself they have seen as this run began.
 */
export async function seenPassages(store: ThreadStore, { threadId, resourceId }: Required<Scope>, passages: readonly RecalledPassage[]): Promise<RecalledPassage[]> {
  const seen: RecalledPassage[] = []
  for (const passage of passages) {
    if (passage.threadId === threadId) {
      seen.push(passage)
      continue
    }
    const ids = passage.messages.map(({ message }) => message.id)
    const unseen = await unseenIn(store, { threadId: passage.threadId, resourceId }, ids)
    const messages = passage.messages.filter(({ message }) => !unseen.has(message.id))
    if (messages.length > 0) seen.push(unseen.size === 0 ? passage : { ...passage, messages })
  }
  return seen
}

async function unseenIn(store: ThreadStore, scope: Scope, messageIds: string[]): Promise<Set<string>> {
  const { rows } = await store.listRows(scope, { messageIds, limit: messageIds.length * page })
  const sent = rows.filter(isSent)
  const oldest = sent[0]?.seq
  if (oldest === undefined) return new Set()
  const answered = await lastAnswer(store, scope, oldest)
  return new Set(sent.filter(({ seq = 0 }) => seq > answered).map(({ messageId }) => messageId))
}

/** The `seq` of the last thing that a model said on the thread; 0 when it said nothing after `from`. */
async function lastAnswer(store: ThreadStore, scope: Scope, from: number): Promise<number> {
  for (let before: number | undefined; ;) {
    const { rows, more }: { rows: MessageRow[]; more: boolean } = await store.listRows(scope, { limit: page, ...(before === undefined ? {} : { before }) })
    const answer = rows.findLast(isAnswer)
    if (answer) return answer.seq ?? 0
    before = rows[0]?.seq ?? 0
    if (!more || before <= from) return 0
  }
}
