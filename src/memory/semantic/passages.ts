import type { Message } from '../../message/message.ts'
import { Copies, type MessageStamp } from '../../recall/rank/copies.ts'
import { searchableText } from '../../recall/text/searchable.ts'
import type { Scope, ThreadRow, ThreadStore } from '../../store/contract/threads.ts'
import type { MessageStart } from '../../store/contract/messages.ts'
import { refKey, type MessageRef, type RecallHit } from '../../store/contract/recall.ts'
import { messagesAt, startsIn, type Placed } from '../messages.ts'
import type { RecalledPassage } from './block.ts'

export interface Around {
  before: number
  after: number
  /** Messages of a thread from this `seq` on are left out. */
  shown?: { threadId: string; from: number }
  /** Messages that are not wanted, unless they were found. */
  except?: readonly MessageRef[]
  /** What is shown already, wherever it was read: copies of it are left out, and of several copies all but one. */
  held?: readonly Message[]
}

/** Hits with the messages around them. Those that touch are one passage; no message is in two. */
export async function passagesAround(store: ThreadStore, hits: readonly RecallHit[], around: Around): Promise<RecalledPassage[]> {
  const byThread = Map.groupBy(hits, ({ threadId }) => threadId)
  const passages: RecalledPassage[] = []
  const except = new Set(around.except?.map(refKey))
  for (const [threadId, found] of byThread) {
    const [{ resourceId } = { resourceId: '' }] = found
    const scope: Scope = { threadId, resourceId }
    const before = await store.getThread(scope)
    if (!before) continue
    for (const { starts, hits: inside } of await joined(store, scope, found, around)) {
      const { thread, placed } = await settled(store, before, starts)
      if (!thread) continue
      const found = new Map(inside.map(({ messageId, text, score, reasons }) => [messageId, { score, reasons, text }]))
      const isWanted = (id: string) => found.has(id) || !except.has(refKey({ threadId, messageId: id }))
      const messages = placed.filter(({ message, seq }) => isWanted(message.id) && !(threadId === around.shown?.threadId && seq >= around.shown.from))
      if (messages.length === 0) continue
      passages.push({
        threadId,
        title: thread.title,
        messages: messages.map(({ message, seq }) => {
          const hit = found.get(message.id)
          return { message, seq, ...(hit && { hit }) }
        }),
      })
    }
  }
  return around.held ? withoutCopies(passages, around.held) : passages
}

function withoutCopies(passages: readonly RecalledPassage[], held: readonly Message[]): RecalledPassage[] {
  const copies = new Copies()
  const stampOf = ({ role, createdAt }: Message): MessageStamp => ({ role, createdAt: createdAt.getTime() })
  const textOf = ({ content }: Message) => () => searchableText(content)
  const found = passages.flatMap(({ messages }) => messages.flatMap(({ message, hit }) => (hit ? message : [])))
  for (const message of [...held, ...found]) copies.add(stampOf(message), textOf(message))
  return passages.map((passage) => ({
    ...passage,
    messages: passage.messages.filter(({ message, hit }) => {
      if (hit) return true
      if (copies.has(stampOf(message), textOf(message))) return false
      copies.add(stampOf(message), textOf(message))
      return true
    }),
  }))
}

/** Messages without what a run that isn't over may still take back, or took back while they were read. */
async function settled(store: ThreadStore, before: ThreadRow, starts: readonly MessageStart[]): Promise<{ thread: ThreadRow | null; placed: Placed[] }> {
  const scope: Scope = { threadId: before.id, resourceId: before.resourceId }
  const placed = await messagesAt(store, scope, starts)
  // Asked after they were read: what a run that begins later adds is not among them.
  const thread = await store.getThread(scope)
  const run = thread && thread.status !== 'idle' && thread.runId !== undefined ? await store.getRun(scope, thread.runId) : null
  if (!run && before.status === 'idle') return { thread, placed }
  return { thread, placed: await messagesAt(store, scope, starts, ({ runId, seq = 0 }) => !run || runId !== run.runId || seq < run.sealSeq) }
}

interface Stretch {
  starts: MessageStart[]
  hits: RecallHit[]
}

async function joined(store: ThreadStore, scope: Scope, hits: readonly RecallHit[], { before, after }: Around): Promise<Stretch[]> {
  const stretches: Stretch[] = []
  for (const hit of hits.toSorted((a, b) => a.seq - b.seq)) {
    const [earlier, own, later] = await Promise.all([
      startsIn(store, scope, { from: 'newest', beyond: hit.seq, limit: before + 1 }),
      startsIn(store, scope, { from: 'oldest', beyond: hit.seq - 1, limit: 1 }),
      startsIn(store, scope, { from: 'oldest', beyond: hit.seq, limit: after }),
    ])
    // A hit may be a later row of its message: the message then begins before it.
    const [there] = own.starts
    const mine = there?.messageId === hit.messageId ? there : earlier.starts.findLast(({ messageId }) => messageId === hit.messageId)
    if (!mine) continue
    const previous = before === 0 ? [] : earlier.starts.filter(({ seq }) => seq < mine.seq).slice(-before)
    const starts = [...previous, mine, ...later.starts.filter(({ messageId }) => messageId !== mine.messageId)]
    const last = stretches.at(-1)
    const end = last?.starts.at(-1)
    if (last && end && (starts[0]?.seq ?? 0) <= end.seq) {
      last.starts.push(...starts.filter(({ seq }) => seq > end.seq))
      last.hits.push(hit)
    } else stretches.push({ starts, hits: [hit] })
  }
  return stretches
}
