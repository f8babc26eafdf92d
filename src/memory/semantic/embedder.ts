import type { TextEmbedder } from '../../recall/embedder.ts'
import { resolveEmbedder, type EmbedderInput } from '../../run/model/embedding-model.ts'

/** Of models that don't say how many texts they take at once. */
const defaultBatch = 96

const made = new WeakMap<object, TextEmbedder>()
const named = new Map<string, TextEmbedder>()

/** The same, with the one whose vectors serve meanwhile. The same model as before is no change. */
export function textEmbedderAfter(embedder: EmbedderInput, former: EmbedderInput | undefined): TextEmbedder {
  const text = textEmbedder(embedder)
  const before = former === undefined ? undefined : textEmbedder(former)
  return before && before.id !== text.id ? { ...text, former: before } : text
}

/** What makes vectors, of what a program passes as one. The same is made once. */
export function textEmbedder(embedder: EmbedderInput): TextEmbedder {
  const known = typeof embedder === 'string' ? named.get(embedder) : made.get(embedder)
  if (known) return known
  const model = resolveEmbedder(embedder)
  const most = model.maxEmbeddingsPerCall
  const maxBatch = typeof most === 'number' && most >= 1 && Number.isFinite(most) ? Math.floor(most) : defaultBatch
  const text: TextEmbedder = {
    id: `${model.provider}/${model.modelId}`,
    maxBatch,
    async embed(texts, signal) {
      const vectors: number[][] = []
      for (let start = 0; start < texts.length; start += maxBatch) {
        const { embeddings } = await model.doEmbed({ values: texts.slice(start, start + maxBatch), ...(signal && { abortSignal: signal }) })
        vectors.push(...embeddings)
      }
      return vectors
    },
  }
  if (typeof embedder === 'string') named.set(embedder, text)
  else made.set(embedder, text)
  return text
}
