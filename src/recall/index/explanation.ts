import type { MessageContent } from '../../message/message.ts'
import { refKey, type MessageRef, type MissingReason, type RankedMessage, type RecallHit } from '../../store/contract/recall.ts'
import type { Statements } from '../../store/sql/statements.ts'
import type { Posting } from '../rank/bm25.ts'
import { explainPassage, placeOf, scoreOf, type ExplainedReason } from '../rank/explanation.ts'
import type { Scores } from '../rank/rank.ts'
import type { Worth } from '../rank/worth.ts'
import { maxPassages, searchableText, splitPassages } from '../text/passages.ts'
import { wordsByTerm } from '../text/terms.ts'
import type { ResourceCollection } from './resource-collection.ts'
import { firstPassageKey, messageKey } from './schema.ts'

/** A search that was made, to explain it. */
export interface Search {
  collection: ResourceCollection
  scores: Scores
  postings: readonly Posting[]
  cosines: Float32Array | undefined
  terms: number
  worth: Worth
  confidence: number
  /** The question. */
  text: string
  /** False for passages that the filter or the scope leaves out. */
  allowed?: ((at: number) => boolean) | undefined
}

/** A row of the message that a caller asks about. */
interface AskedRow {
  key: number
  role: string
  content: string
}

/** Why a hit is at its place. */
export function explainHit(search: Search, { threadId, messageId, text, score }: RecallHit, at: number, rank: number): RankedMessage {
  return { threadId, messageId, text, rank, score, reasons: reasonsAt(search, at) }
}

/** Why a message of the resource is at its place, or at none. Undefined where the resource does not have it. */
export function explainMessage(
  messages: Statements, search: Search, found: { resourceId: string; hits: readonly RecallHit[]; limit: number }, asked: MessageRef,
): RankedMessage | undefined {
  const { resourceId, hits, limit } = found
  const rows = rowsOf(messages, resourceId, asked)
  if (rows.length === 0) return undefined
  const { collection } = search
  const passages = rows.flatMap(({ key }) => {
    const [from, to] = collection.rangeOf(firstPassageKey(key))
    return Array.from({ length: to - from }, (_, n) => from + n)
  })
  const none = { ...asked, score: 0, reasons: [] }
  const [first] = passages.map((at) => ({ at, reasons: reasonsAt(search, at) })).toSorted((a, b) => scoreOf(b.reasons) - scoreOf(a.reasons))
  if (!first) {
    const text = rows.map(textOf).join('\n').trim()
    return { ...none, text, missing: text === '' ? 'no_text' : 'not_indexed' }
  }
  const { at, reasons } = first
  const text = splitPassages(rows.filter(({ key }) => key === messageKey(collection.keys[at] ?? 0)).map(textOf).join('\n'))[
    (collection.keys[at] ?? 0) % maxPassages] ?? ''
  const place = hits.findIndex((hit) => refKey(hit) === refKey(asked))
  const rank = place >= 0 ? place + 1 : placeOf(search.scores, at, (one) => messageKey(collection.keys[one] ?? 0))
  const missing = place >= 0 ? undefined : missingReason(search, at, rank, hits.length < limit ? Number.POSITIVE_INFINITY : hits.length)
  return {
    ...asked, text, score: scoreOf(reasons), reasons, ...(rank !== undefined && { rank }), ...(missing && { missing }),
  }
}

/** `places`: those of the hits, or all where the hits are fewer than were asked for. */
function missingReason({ allowed }: Search, at: number, rank: number | undefined, places: number): MissingReason {
  if (allowed && !allowed(at)) return 'filter'
  if (rank === undefined) return 'unrelated'
  // A message at a place of the hits is left out only while its run is active, or a change of it is not indexed.
  return rank <= places ? 'running' : 'rank'
}

function reasonsAt(search: Search, at: number): ExplainedReason[] {
  return explainPassage(search.collection, search.scores, { ...search, words: wordsByTerm(search.text) }, at)
}

// Two queries, one for each index by which a message is found.
const rowsSql = ['m.id = ?2 AND m.message_id = m.id', 'm.message_id = ?2 AND m.message_id <> m.id']
  .map((where) => `SELECT m.key, m.role, m.content FROM heed_threads t JOIN heed_messages m ON m.thread = t.key
    WHERE t.id = ?1 AND t.resource_id = ?3 AND ${where}`)
  .join(' UNION ALL ')

function rowsOf(messages: Statements, resourceId: string, { threadId, messageId }: MessageRef): AskedRow[] {
  return messages.all<AskedRow>(rowsSql, threadId, messageId, resourceId).filter(({ role }) => role !== 'context')
}

function textOf({ content }: AskedRow): string {
  return searchableText(JSON.parse(content) as MessageContent)
}
