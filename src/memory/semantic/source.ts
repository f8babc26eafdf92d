import { describe } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { joinRows } from '../../message/join.ts'
import type { MessageRow } from '../../message/row.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import { searchableText } from '../../recall/text/passages.ts'
import type { ContextBlock, ContextSource } from '../../run/loop/run-contract.ts'
import { isAnswer, isSent } from '../../run/loop/unanswered.ts'
import type { Scope, ThreadStore } from '../../store/contract/threads.ts'
import { refKey, type RecallHit, type RecallIndex } from '../../store/contract/recall.ts'
import type { Attributes } from '../../tracing/telemetry.ts'
import type { RunTrace } from '../../tracing/run-trace.ts'
import {
  hasRecallNotice, noticeTokens, readRecalled, recallBlock, recalledTokens, recallNotice, type RecalledMessage, type RecalledPassage,
} from './block.ts'
import { passagesAround } from './passages.ts'
import type { RecallSetting } from './setting.ts'

/** What recall needs to know of a run. */
interface RecallContext {
  store: ThreadStore
  index: RecallIndex
  embedder: TextEmbedder | undefined
  threadId: string
  resourceId: string
  /** Input processors check messages before a model reads them: messages that they have not checked yet must not be quoted. */
  hasInputProcessors: boolean
  /** The rows that started the run. */
  input: readonly MessageRow[]
  logger: Logger
  trace: RunTrace | undefined
}

/** The question is the end of the input, at most so long. */
const maxQuestionLength = 4_000

const rowsAtOnce = 50

/** Recalls once per run, for the input that started it. A search that fails is logged; the run continues without a recall block. */
export function recallSource(setting: RecallSetting, context: RecallContext): ContextSource {
  let searched = false
  return async (rows) => {
    const text = questionOf(context.input)
    if (searched || text === '') return undefined
    searched = true
    try {
      const work = () => search(setting, context, rows, text)
      return (await (context.trace ? context.trace.search(text, setting.topK, work, traceAttributes) : work())).block
    } catch (error) {
      context.logger.warn(`Recall failed on thread '${context.threadId}'`, { error: describe(error) })
      return undefined
    }
  }
}

interface SearchResult {
  /** The hits above the threshold, best first. */
  hits: readonly RecallHit[]
  block: ContextBlock | undefined
  /** The index lacks messages, so that some could not be found. */
  incomplete: boolean
}

/** The trace attributes of a search, without any content of messages. */
function traceAttributes({ hits, block, incomplete }: SearchResult): Attributes {
  const hasReason = (...names: ReadonlyArray<keyof RecallHit['reasons']>) =>
    hits.some(({ reasons }) => names.some((name) => reasons[name] > 0))
  return {
    'heed.recall.count': block?.quoted?.length ?? 0,
    'heed.recall.found': hits.length,
    'heed.recall.best_score': hits[0]?.score,
    ...(incomplete && { 'heed.recall.incomplete': true }),
    'heed.recall.kinds': [
      ...(hasReason('words', 'wordsOfPair', 'wordsOfThread') ? ['words'] : []),
      ...(hasReason('meaning', 'meaningOfPair') ? ['vectors'] : []),
    ],
  }
}

async function search(setting: RecallSetting, context: RecallContext, rows: readonly MessageRow[], text: string): Promise<SearchResult> {
  const { store, index, embedder, threadId, resourceId, hasInputProcessors, input: [first], logger } = context
  // The notice says that nothing is added until the window is cut.
  if (hasRecallNotice(rows)) return { hits: [], block: undefined, incomplete: false }
  const from = rows.reduce((least, { seq }) => Math.min(least, seq ?? least), Number.MAX_SAFE_INTEGER)
  const recalled = readRecalled(rows)
  const shown = { threadId, from, ...(first?.seq !== undefined && { asked: first.seq }) }
  const { filter, topK, threshold, scope } = setting
  const hits = await index.search({
    resourceId,
    text,
    limit: topK,
    shown,
    except: recalled.whole,
    distinct: true,
    ...(scope === 'thread' && { threadId }),
    embedder: embedder ?? false,
    ...(filter && { filter }),
  })
  // What is not indexed yet may be asked for again; a vector store that is away leaves the words.
  const incomplete = hits.incompleteReason === 'indexing'
  if (hits.incompleteReason === 'vectors') {
    const why = 'the vector store did not answer. recallStatus() has the error'
    logger.warn(`Recall on thread '${threadId}' compared words only: ${why}`, { threadId })
  }
  if (incomplete) logger.warn(`Recall on thread '${threadId}' could not find every message: the index is still being made`, { threadId })
  const partlyShown = new Set(recalled.all.map(refKey))
  const good = hits.filter((hit) => hit.score >= threshold && !(partlyShown.has(refKey(hit)) && recalled.has(hit.text)))
  const found = await passagesAround(store, good, { ...setting, shown, except: recalled.all, held: joinRows(rows) })
  const passages = hasInputProcessors ? await checkedPassages(store, { threadId, resourceId }, found) : found
  const block = recallBlock(passages, { threadId, question: text, maxTokens: blockTokens(setting, rows), incomplete })
  if (block || !passages.some(({ messages }) => messages.some(hasText))) return { hits: good, block, incomplete }
  const why = 'the recall blocks of its window have used their tokens. Raise maxWindowTokens or maxTokens of semanticRecall'
  logger.warn(`Recall on thread '${threadId}' found messages and added none: ${why}`, { threadId, found: good.length })
  return { hits: good, block: recallNotice(), incomplete }
}

/** False for a hit whose message was emptied after the search. */
function hasText({ hit, message: { content } }: RecalledMessage): boolean {
  return hit !== undefined && searchableText(content).trim() !== ''
}

/** The part of what the window has left that one block may use. The first blocks are the largest, and later ones still have some. */
const shareOfBlock = 1 / 3

/** The tokens of the next block. The window keeps its blocks until it is cut, so that the prompt before the next block stays the same. */
function blockTokens({ maxTokens, maxWindowTokens }: RecallSetting, rows: readonly MessageRow[]): number {
  const used = recalledTokens(rows)
  // After the first block, the tokens of a notice are kept for it.
  const left = maxWindowTokens - (used === 0 ? 0 : used + noticeTokens)
  return maxTokens === undefined ? Math.ceil(left * shareOfBlock) : Math.min(maxTokens, left)
}

/** The text of the user's messages in the input; without any, of its signals. */
function questionOf(input: readonly MessageRow[]): string {
  const users = input.filter(({ role }) => role === 'user')
  const rows = users.length > 0 ? users : input.filter(({ role }) => role === 'signal')
  return rows.map(({ content }) => searchableText(content)).join('\n').slice(-maxQuestionLength).trim()
}

/**
 * Passages without messages of other threads that no model has answered yet: input processors check those when a run of their own thread
 * begins, and no other run may show them to a model before. Messages of this thread were checked when this run began.
 */
async function checkedPassages(
  store: ThreadStore,
  { threadId, resourceId }: Required<Scope>,
  passages: readonly RecalledPassage[],
): Promise<RecalledPassage[]> {
  const checked: RecalledPassage[] = []
  for (const passage of passages) {
    if (passage.threadId === threadId) {
      checked.push(passage)
      continue
    }
    const ids = passage.messages.map(({ message }) => message.id)
    const unchecked = await uncheckedMessages(store, { threadId: passage.threadId, resourceId }, ids)
    const messages = passage.messages.filter(({ message }) => !unchecked.has(message.id))
    if (messages.length > 0) checked.push(unchecked.size === 0 ? passage : { ...passage, messages })
  }
  return checked
}

async function uncheckedMessages(store: ThreadStore, scope: Scope, messageIds: string[]): Promise<Set<string>> {
  const { rows } = await store.listRows(scope, { messageIds, limit: messageIds.length * rowsAtOnce })
  const sent = rows.filter(isSent)
  const oldest = sent[0]?.seq
  if (oldest === undefined) return new Set()
  const answered = await lastAnswerSeq(store, scope, oldest)
  return new Set(sent.filter(({ seq = 0 }) => seq > answered).map(({ messageId }) => messageId))
}

/** The `seq` of the last answer of a model on the thread; 0 when there is none after `from`. */
async function lastAnswerSeq(store: ThreadStore, scope: Scope, from: number): Promise<number> {
  for (let before: number | undefined; ;) {
    const { rows, more }: { rows: MessageRow[]; more: boolean } = await store.listRows(scope, {
      limit: rowsAtOnce,
      ...(before === undefined ? {} : { before }),
    })
    const answer = rows.findLast(isAnswer)
    if (answer) return answer.seq ?? 0
    before = rows[0]?.seq ?? 0
    if (!more || before <= from) return 0
  }
}
