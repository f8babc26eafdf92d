/** What makes vectors of texts. Vectors of two embedders can't be compared: `id` says whose they are. */
export interface TextEmbedder {
  /** Stable: the same id means the same vectors for the same texts. */
  readonly id: string
  /** The one before it, whose vectors serve until its own are all there. */
  readonly former?: TextEmbedder
  /** How many texts it takes at once. */
  readonly maxBatch: number
  /** One vector for each text, all of one length. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<ArrayLike<number>[]>
}
