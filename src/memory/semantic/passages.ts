import type { Message } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { Copies, DistinctTexts, type MessageStamp } from '../../recall/rank/copies.ts'
import { searchableText } from '../../recall/text/passages.ts'
import type { Scope, ThreadRow, ThreadStore } from '../../store/contract/threads.ts'
import type { MessageStart } from '../../store/contract/messages.ts'
import { refKey, type MessageRef, type RecallHit } from '../../store/contract/recall.ts'
import { messagesAt, readStarts, type PositionedMessage } from '../messages.ts'
import type { RecalledPassage } from './block.ts'

interface PassageOptions {
  before: number
  after: number
  /** Messages of this thread from this `seq` on are left out. */
  shown?: { threadId: string; from: number }
  /** Messages that are left out unless they are hits. */
  except?: readonly MessageRef[]
  /** Messages of the prompt, of any thread. Copies of them are left out; of several copies or equal neighbors, one is kept. */
  held?: readonly Message[]
}

/** Hits with the messages around them. Overlapping ranges become one passage: no message is in two. */
export async function passagesAround(store: ThreadStore, hits: readonly RecallHit[], around: PassageOptions): Promise<RecalledPassage[]> {
  const byThread = Map.groupBy(hits, ({ threadId }) => threadId)
  const passages: RecalledPassage[] = []
  const except = new Set(around.except?.map(refKey))
  for (const [threadId, found] of byThread) {
    const [{ resourceId } = { resourceId: '' }] = found
    const scope: Scope = { threadId, resourceId }
    const before = await store.getThread(scope)
    if (!before) continue
    for (const { starts, hits: inside } of await mergeRanges(store, scope, found, around)) {
      const { thread, messages: read } = await readCommitted(store, before, starts)
      if (!thread) continue
      const byId = new Map(inside.map(({ messageId, text, score, reasons }) => [messageId, { score, reasons, text }]))
      const isWanted = (id: string) => byId.has(id) || !except.has(refKey({ threadId, messageId: id }))
      const messages = read.filter(
        ({ message, seq }) => isWanted(message.id) && !(threadId === around.shown?.threadId && seq >= around.shown.from),
      )
      if (messages.length === 0) continue
      passages.push({
        threadId,
        title: thread.title,
        messages: messages.map(({ message, seq }) => {
          const hit = byId.get(message.id)
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
  const distinct = new DistinctTexts()
  for (const message of found) distinct.add(textOf(message)())
  return passages.map((passage) => ({
    ...passage,
    messages: passage.messages.filter(({ message, hit }) => {
      if (hit) return true
      if (copies.has(stampOf(message), textOf(message)) || !distinct.add(textOf(message)())) return false
      copies.add(stampOf(message), textOf(message))
      return true
    }),
  }))
}

/** Messages without rows that an active run may still undo, or undid while they were read. */
async function readCommitted(
  store: ThreadStore, before: ThreadRow, starts: readonly MessageStart[],
): Promise<{ thread: ThreadRow | null; messages: PositionedMessage[] }> {
  const scope: Scope = { threadId: before.id, resourceId: before.resourceId }
  const messages = await messagesAt(store, scope, starts)
  // Read after the messages: they contain no rows of a run that begins later.
  const thread = await store.getThread(scope)
  const run = thread && thread.status !== 'idle' && thread.runId !== undefined ? await store.getRun(scope, thread.runId) : null
  if (!run && before.status === 'idle') return { thread, messages }
  const isCommitted = ({ runId, seq = 0 }: MessageRow) => !run || runId !== run.runId || seq < run.sealSeq
  return { thread, messages: await messagesAt(store, scope, starts, isCommitted) }
}

interface MessageRange {
  starts: MessageStart[]
  hits: RecallHit[]
}

/** The ranges of messages around hits of one thread, in order and without overlap. */
async function mergeRanges(
  store: ThreadStore, scope: Scope, hits: readonly RecallHit[], { before, after }: PassageOptions,
): Promise<MessageRange[]> {
  const ranges: MessageRange[] = []
  for (const hit of hits.toSorted((a, b) => a.seq - b.seq)) {
    const [earlier, own, later] = await Promise.all([
      readStarts(store, scope, { from: 'newest', beyond: hit.seq, limit: before + 1 }),
      readStarts(store, scope, { from: 'oldest', beyond: hit.seq - 1, limit: 1 }),
      readStarts(store, scope, { from: 'oldest', beyond: hit.seq, limit: after }),
    ])
    // A hit may be a later row of its message, which then begins before it.
    const [atHit] = own.starts
    const start = atHit?.messageId === hit.messageId ? atHit : earlier.starts.findLast(({ messageId }) => messageId === hit.messageId)
    if (!start) continue
    const previous = before === 0 ? [] : earlier.starts.filter(({ seq }) => seq < start.seq).slice(-before)
    const starts = [...previous, start, ...later.starts.filter(({ messageId }) => messageId !== start.messageId)]
    const last = ranges.at(-1)
    const end = last?.starts.at(-1)
    if (last && end && (starts[0]?.seq ?? 0) <= end.seq) {
      last.starts.push(...starts.filter(({ seq }) => seq > end.seq))
      last.hits.push(hit)
    } else ranges.push({ starts, hits: [hit] })
  }
  return ranges
}
