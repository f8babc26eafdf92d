import { describe, isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import type { MetadataFilter } from '../../recall/filter/filter.ts'
import type { Reasons } from '../../recall/rank/rank.ts'

/**
 * Finds messages by what they say. Part of a storage, beside its threads.
 * - What a message says is found as soon as it is committed, and never by what it said before.
 * - A search sees one resource alone.
 * - Vectors follow: an embedder that is down or answers rubbish is asked again, and `status` says so.
 */
export interface RecallIndex {
  search(query: RecallQuery): Promise<RecallHit[]>
  /** From now on vectors are made with this one, of what is there and of what comes. Those of its former one serve until it is through. `logger` is told what fails and nobody waits for. */
  embedWith(embedder: TextEmbedder, logger?: Logger): void
  status(): Promise<RecallStatus>
  /**
   * Indexes everything again, while what is there serves. An `onProgress` that throws stops nothing: when all is done, this rejects with what it threw first. It
   * comes to an end also where an embedder doesn't: it rejects with what that does wrong, and vectors follow when it does it right.
   */
  reindex(options?: { onProgress?: (progress: RecallProgress) => void }): Promise<void>
}

export interface RecallQuery {
  /** Without one, that of the thread. */
  resourceId?: string
  /** Only in this thread. */
  threadId?: string
  text: string
  /** So many messages, each with its best passage. */
  limit: number
  /** Makes the vector of the text. `false`: only words are compared. Without any, the one that `embedWith` was given last. */
  embedder?: TextEmbedder | false
  /** On `thread_id`, `role`, `created_at` and the metadata of the thread. */
  filter?: MetadataFilter
  /** Messages of a thread from this `seq` on are not wanted. From `asked` on they are the question: what others are worth isn't measured by them. */
  shown?: { threadId: string; from: number; asked?: number }
  /** Messages that are not wanted. */
  except?: readonly MessageRef[]
}

/** Ids of messages mean nothing outside of their thread. */
export interface MessageRef {
  threadId: string
  messageId: string
}

export function refKey({ threadId, messageId }: MessageRef): string {
  return `${threadId}\n${messageId}`
}

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
  /** What spoke for it, and how much: `words` it shares, its `meaning`, its neighbours, its thread. */
  reasons: Reasons
}

export interface RecallStatus {
  /** Changes of messages that full text has not seen yet. */
  pending: number
  rebuilding?: RecallProgress
  embedders: EmbedderStatus[]
  /** Why indexing doesn't go on, while it doesn't. It is tried again. */
  error?: string
}

export interface EmbedderStatus {
  id: string
  dimension?: number
  /** Every passage has its vectors. */
  complete: boolean
  embedded: number
  pending: number
  /** Passages that it failed at, and what it did wrong last. They are tried again. */
  failing: number
  error?: string
  /** `dimension_changed`: its vectors can't be compared with those that are stored until `reindex()` made them anew. Words answer meanwhile. */
  errorCode?: HeedErrorCode
}

export type EmbedderFailure = Required<Pick<EmbedderStatus, 'error'>> & Pick<EmbedderStatus, 'errorCode'>

export function failureOf(error: unknown): EmbedderFailure {
  return { error: describe(error), ...(isHeedError(error) && { errorCode: error.code }) }
}

/** First of messages, as they are read; then of passages, as each embedder has seen them. */
export interface RecallProgress {
  done: number
  total: number
  /** Whose vectors are made. */
  embedder?: string
}
