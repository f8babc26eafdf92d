import { checkName, checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import type { MemoryOptions } from '../../run/options.ts'
import type { IncompleteReason, MissingReason, RankedMessage } from '../../store/contract/recall.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import type { RecallArgs } from '../recall.ts'
import { openSearch } from './search.ts'

/** A search of `recall()`, and which message of it is to be explained. */
export interface ExplainRecallArgs
  extends Pick<RecallArgs, 'threadId' | 'resourceId' | 'perPage' | 'filter' | 'threadConfig'> {
  vectorSearchString: string
  /** The message, found or not; of the thread `threadId` where it names none. Default: each message that is found. */
  message?: { id: string; threadId?: string }
}

/** Why a search found messages, or did not find one. */
export interface ExplainedRecall {
  /** The messages that were found, best first; or the one that was asked about. */
  messages: RecallExplanation[]
  /** The search could not find every message that it should. */
  incomplete?: true
  incompleteReason?: IncompleteReason
}

/** Why a message is at its place in a search, or is not found. */
export interface RecallExplanation extends RankedMessage {
  found: boolean
  /** Its place, or why it has none, in a sentence. */
  summary: string
}

const names = ['threadId', 'resourceId', 'vectorSearchString', 'perPage', 'filter', 'threadConfig', 'message']

/** Why `recall()` with the same arguments finds these messages, or why it does not find one. */
export async function explainRecall(
  store: ThreadStore, args: ExplainRecallArgs, options: MemoryOptions, embedder: TextEmbedder | undefined,
): Promise<ExplainedRecall> {
  checkNames('explainRecall()', args, names)
  const { message } = args
  if (message !== undefined) {
    checkNames('message', message, ['id', 'threadId'])
    checkName('message.id', message.id)
    if (message.threadId !== undefined) checkName('message.threadId', message.threadId)
  }
  const { search, threshold = 0, limit } = await openSearch(store, args, options, embedder)
  const threadId = message?.threadId ?? [args.threadId].flat()[0] ?? ''
  const found = await search?.({ explain: message ? { threadId, messageId: message.id } : true })
  const explained = found?.explained ?? []
  if (message && explained.length === 0) {
    throw new HeedError('not_found', `The resource has no message '${message.id}' in the thread '${threadId}'.`, {
      details: { messageId: message.id, threadId },
    })
  }
  const { incomplete, incompleteReason } = found ?? {}
  const messages = explained
    .map((one) => described(one, limit, threshold))
    .filter((one) => message !== undefined || one.found)
  return { messages, ...(incomplete && { incomplete }), ...(incompleteReason && { incompleteReason }) }
}

function described(one: RankedMessage, limit: number, threshold: number): RecallExplanation {
  const missing = one.missing ?? (one.score < threshold ? 'threshold' : undefined)
  const place = `place ${one.rank ?? 0} of the messages that fit`
  const why: Record<MissingReason, string> = {
    rank: `it is at ${place}, and the search returns ${limit}`,
    threshold: `its score of ${one.score.toFixed(2)} is below the threshold of ${threshold}`,
    filter: 'the filter, the dates or the scope of the search leave it out',
    unrelated: 'neither its words nor its meaning fit, nor those of the messages beside it',
    running: 'its run is active and may still withdraw it, or a change of it is not indexed yet',
    not_indexed: 'the index does not have it yet',
    no_text: 'it has no text',
  }
  const summary = missing ? `Not found: ${why[missing]}.` : `Found, at ${place}.`
  return { ...one, found: missing === undefined, ...(missing && { missing }), summary }
}
