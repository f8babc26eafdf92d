import { describe, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import type { MetadataFilter } from '../../recall/filter/filter.ts'
import type { ExplainedReason } from '../../recall/rank/explanation.ts'
import type { Reasons } from '../../recall/rank/rank.ts'

/**
 * Finds messages by their contents. Part of a storage, beside its threads.
 * - A message is found as soon as it is committed, and never by contents that it no longer has.
 * - A search covers one resource.
 * - Vectors follow later: an embedder that fails or returns invalid vectors is called again, and `status` reports it.
 */
export interface RecallIndex {
  search(query: RecallQuery): Promise<RecallHits>
  /**
   * Computes the vectors of all present and future messages with this embedder. The vectors of the former one are used until it has
   * finished. `logger` receives what `reportTo` describes.
   */
  embedWith(embedder: TextEmbedder, logger?: Logger): void
  /** The logger receives failures that no call reports, and the progress of long work. */
  reportTo?(logger: Logger): void
  status(): Promise<RecallStatus>
  /**
   * Indexes everything again; the present index is used meanwhile. An `onProgress` that throws stops nothing: at the end, this rejects with
   * its first error. If an embedder keeps failing, this rejects with its error, and the vectors follow when it works again.
   */
  reindex(options?: { onProgress?: (progress: RecallProgress) => void }): Promise<void>
}

export interface RecallQuery {
  /** Default: that of the thread. */
  resourceId?: string
  /** Only in this thread. */
  threadId?: string
  text: string
  /** The maximum number of messages, each with its best passage. */
  limit: number
  /** Computes the vector of the text. `false`: compare words only. Default: the last embedder that was passed to `embedWith`. */
  embedder?: TextEmbedder | false
  /** A filter on `thread_id`, `role`, `created_at` and the metadata of the thread. */
  filter?: MetadataFilter
  /** Excludes messages of a thread from this `seq` on. From `asked` on they are the question, which does not affect scores of others. */
  shown?: { threadId: string; from: number; asked?: number }
  /** Excludes these messages. */
  except?: readonly MessageRef[]
  /** Of messages with equal or nearly equal texts, returns the best alone, and none that asks the same as the query. */
  distinct?: boolean
  /** Explains the place of this message, found or not; `true`: of each hit. */
  explain?: true | MessageRef
}

/** Ids of messages mean nothing outside of their thread. */
export interface MessageRef {
  threadId: string
  messageId: string
}

export function refKey({ threadId, messageId }: MessageRef): string {
  return `${threadId}\n${messageId}`
}

/** A message that a search found, with its score and the reasons for it. */
export interface RecallHit {
  threadId: string
  resourceId: string
  messageId: string
  seq: number
  role: string
  createdAt: Date
  /** The passage that was found. */
  text: string
  /** Between 0 and 1. */
  score: number
  /** What contributed to the score, and how much: shared `words`, `meaning`, neighbors, the thread. */
  reasons: Reasons
}

/** The hits, best first. */
export interface RecallHits extends Array<RecallHit> {
  /** The search could not find every message that it should. */
  incomplete?: true
  incompleteReason?: IncompleteReason
  /** With `explain`: none for a message that the resource does not have. */
  explained?: RankedMessage[]
}

/** A message with its place in a search. */
export interface RankedMessage {
  threadId: string
  messageId: string
  /** The passage of it that fits best. */
  text: string
  /** Its place among all messages that fit, from 1. */
  rank?: number
  /** Between 0 and 1. */
  score: number
  /** What makes up the score, the largest effect first. */
  reasons: ExplainedReason[]
  /** Why it is not among the hits. */
  missing?: MissingReason
}

/**
 * Why a message is not among the hits: `rank`: others fit better; `threshold`: its score is too low; `filter`: the filter, the date range
 * or the scope of the search leaves it out; `unrelated`: neither its words nor its meaning nor those around it fit; `running`: its run may
 * still withdraw it, or a change of it is not indexed yet; `not_indexed`: the index does not have it yet; `no_text`: it has no text.
 */
export type MissingReason = 'rank' | 'threshold' | 'filter' | 'unrelated' | 'running' | 'not_indexed' | 'no_text'

/**
 * Why a search may not have found every message: `indexing`: messages are not in the index yet; `vectors`: the vector store failed or did
 * not answer in time, so that only words were compared.
 */
export type IncompleteReason = 'indexing' | 'vectors'

/** The state of the index of recall. */
export interface RecallStatus {
  /** Changes of messages that are not in the full-text index yet. */
  pending: number
  rebuilding?: RecallProgress
  embedders: EmbedderStatus[]
  /** Why indexing is stopped at present. It is retried. */
  error?: string
}

/** How many passages an embedder has embedded. */
export interface EmbedderStatus {
  id: string
  dimension?: number
  /** Every passage has its vectors. */
  complete: boolean
  embedded: number
  pending: number
  /** The number of passages that it failed for, and its last error. They are retried. */
  failing: number
  error?: string
  /** `dimension_changed`: its vectors can't be compared with the stored ones until `reindex()`. Until then, only words are compared. */
  errorCode?: HeedErrorCode
  /** The id of the vector store that has its vectors. */
  vectorStore?: string
  /** The number of vectors that are deleted here and are still to be deleted in the vector store. */
  removing?: number
}

export type EmbedderFailure = Required<Pick<EmbedderStatus, 'error'>> & Pick<EmbedderStatus, 'errorCode'>

export function failureOf(error: unknown): EmbedderFailure {
  return { error: describe(error), ...(isHeedError(error) && { errorCode: error.code }) }
}

/** First counts messages that are read, then passages that each embedder has processed. */
export interface RecallProgress {
  done: number
  total: number
  /** The embedder whose vectors are computed. */
  embedder?: string
}
