import type { VectorPlace } from './vector-store.ts'

/** Makes vectors of texts. Vectors of different embedders cannot be compared: each is stored with the `id` of its embedder. */
export interface TextEmbedder {
  /** Stable: the same id means the same vectors for the same texts. */
  readonly id: string
  /** The previous embedder, whose vectors serve until this one has embedded all passages. */
  readonly former?: TextEmbedder
  /** Where its vectors are stored; without it, in the index of recall. */
  readonly place?: VectorPlace
  /** The number of texts that one call may have. */
  readonly maxBatch: number
  /** Returns one vector per text, all of the same length. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<ArrayLike<number>[]>
}
