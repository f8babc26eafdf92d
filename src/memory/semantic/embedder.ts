import type { TextEmbedder } from '../../recall/embedder.ts'
import { resolveEmbedder, type EmbedderInput } from '../../run/model/model-router.ts'

/** The batch size for models without `maxEmbeddingsPerCall`. */
const defaultBatch = 96

const byModel = new WeakMap<object, TextEmbedder>()
const byName = new Map<string, TextEmbedder>()

/** The embedder with its former one, unless both are the same model. */
export function textEmbedderWithFormer(embedder: EmbedderInput, former: EmbedderInput | undefined): TextEmbedder {
  const current = textEmbedder(embedder)
  const previous = former === undefined ? undefined : textEmbedder(former)
  return previous && previous.id !== current.id ? { ...current, former: previous } : current
}

/** The text embedder of a model that a program passes; the same object for the same model. */
export function textEmbedder(embedder: EmbedderInput): TextEmbedder {
  const known = typeof embedder === 'string' ? byName.get(embedder) : byModel.get(embedder)
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
  if (typeof embedder === 'string') byName.set(embedder, text)
  else byModel.set(embedder, text)
  return text
}
