import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { joinRows } from '../../message/join.ts'
import type { MessageRow } from '../../message/row.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import { searchableText } from '../../recall/text/searchable.ts'
import type { ContextBlock, ContextSource } from '../../run/loop/run-setup.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import { refKey, type RecallHit, type RecallIndex } from '../../store/contract/recall.ts'
import type { Attributes } from '../../tracing/open-telemetry.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import { recallBlock, recalledIn } from './block.ts'
import { passagesAround } from './passages.ts'
import { seenPassages } from './seen.ts'
import type { RecallSetting } from './setting.ts'

export interface RecallSeat {
  store: ThreadStore
  index: RecallIndex
  embedder: TextEmbedder | undefined
  threadId: string
  resourceId: string
  /** Processors look at input before a model reads it: what they have not seen yet is not quoted. */
  guarded: boolean
  /** What started the run. */
  input: readonly MessageRow[]
  logger: Logger
  trace: RunTrace | undefined
}

/** Of a long input, so much is the question. */
const longestQuestion = 4_000

/** Recalls once in a run, for what started it. A search that fails is logged and is not the run's failure. */
export function recallSource(setting: RecallSetting, seat: RecallSeat): ContextSource {
  let asked = false
  return async (rows) => {
    const text = questionOf(seat.input)
    if (asked || text === '') return undefined
    asked = true
    try {
      const work = () => search(setting, seat, rows, text)
      return (await (seat.trace ? seat.trace.search(text, setting.topK, work, about) : work())).block
    } catch (error) {
      seat.logger.warn(`Nothing could be recalled on thread '${seat.threadId}'`, { error: describe(error) })
      return undefined
    }
  }
}

interface Searched {
  /** What was found and is good enough, best first. */
  hits: readonly RecallHit[]
  block: ContextBlock | undefined
}

/** What a trace is told of a search, without a word of what was said. */
function about({ hits, block }: Searched): Attributes {
  const spoke = (...names: ReadonlyArray<keyof RecallHit['reasons']>) => hits.some(({ reasons }) => names.some((name) => reasons[name] > 0))
  return {
    'heed.recall.count': block?.quoted?.length ?? 0,
    'heed.recall.found': hits.length,
    'heed.recall.best_score': hits[0]?.score,
    'heed.recall.kinds': [...(spoke('words', 'wordsOfPair', 'wordsOfThread') ? ['words'] : []), ...(spoke('meaning', 'meaningOfPair') ? ['vectors'] : [])],
  }
}

async function search(setting: RecallSetting, seat: RecallSeat, rows: readonly MessageRow[], text: string): Promise<Searched> {
  const { store, index, embedder, threadId, resourceId, guarded, input: [asked] } = seat
  const from = rows.reduce((least, { seq }) => Math.min(least, seq ?? least), Number.MAX_SAFE_INTEGER)
  const before = recalledIn(rows)
  const shown = { threadId, from, ...(asked?.seq !== undefined && { asked: asked.seq }) }
  const { filter, topK, threshold, scope } = setting
  const hits = await index.search({
    resourceId, text, limit: topK, shown, except: before.whole, ...(scope === 'thread' && { threadId }), embedder: embedder ?? false, ...(filter && { filter }),
  })
  const partly = new Set(before.all.map(refKey))
  const good = hits.filter((hit) => hit.score >= threshold && !(partly.has(refKey(hit)) && before.has(hit.text)))
  const passages = await passagesAround(store, good, { ...setting, shown, except: before.all, held: joinRows(rows) })
  const seen = guarded ? await seenPassages(store, { threadId, resourceId }, passages) : passages
  return { hits: good, block: recallBlock(seen, { threadId, question: text, maxTokens: setting.maxTokens }) }
}

/** What a user said; where nobody did, what happened. */
function questionOf(input: readonly MessageRow[]): string {
  const users = input.filter(({ role }) => role === 'user')
  const asking = users.length > 0 ? users : input.filter(({ role }) => role === 'signal')
  return asking.map(({ content }) => searchableText(content)).join('\n').slice(-longestQuestion).trim()
}
