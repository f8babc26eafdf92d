import type { EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { loadEmbeddingModel, parseModelId } from './model-router.ts'

/**
 * An embedding model by its name. The provider's package is loaded on first use.
 *
 * @example new Memory({ embedder: new ModelRouterEmbeddingModel('openai/text-embedding-3-small') })
 */
export class ModelRouterEmbeddingModel implements EmbeddingModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider: string
  readonly modelId: string
  readonly maxEmbeddingsPerCall = 96
  readonly supportsParallelCalls = true
  readonly #id: string
  #model: Promise<EmbeddingModelV4> | undefined

  constructor(model: string | { providerId: string; modelId: string }) {
    const id = typeof model === 'string' ? model : `${model?.providerId}/${model?.modelId}`
    const { provider, model: name } = parseModelId(id)
    this.provider = provider
    this.modelId = name
    this.#id = id
  }

  async doEmbed(options: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    this.#model ??= loadEmbeddingModel(this.#id).catch((error: unknown) => {
      this.#model = undefined
      throw error
    })
    return (await this.#model).doEmbed(options)
  }
}

/** The fields that embedding models of all specification versions have. */
export interface AnyEmbeddingModel {
  readonly specificationVersion?: string
  readonly provider: string
  readonly modelId: string
  readonly maxEmbeddingsPerCall?: number | undefined | PromiseLike<number | undefined>
  doEmbed(options: { values: string[]; abortSignal?: AbortSignal }): PromiseLike<{ embeddings: number[][] }>
}

/** `'provider/model'`, or an embedding model of the AI SDK. */
export type EmbedderInput = string | AnyEmbeddingModel

export function resolveEmbedder(embedder: unknown): AnyEmbeddingModel {
  if (typeof embedder === 'string') return new ModelRouterEmbeddingModel(embedder)
  if (typeof embedder === 'object' && embedder !== null && 'doEmbed' in embedder && 'modelId' in embedder) {
    return embedder as AnyEmbeddingModel
  }
  const message = "embedder must be 'provider/model', an embedding model of the AI SDK, or localEmbedder() of heed/embed."
  throw new HeedError('invalid_argument', message, { details: { option: 'embedder' } })
}
