import { expect, it } from 'vitest'
import { textEmbedder } from './setting.ts'

it.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, undefined])(
  'uses the default batch for a model with maxEmbeddingsPerCall %s',
  async (maxEmbeddingsPerCall) => {
    const calls: number[] = []
    const embedder = textEmbedder({
      specificationVersion: 'v4',
      provider: 'test',
      modelId: `most-${maxEmbeddingsPerCall}`,
      maxEmbeddingsPerCall,
      doEmbed: async ({ values }) => {
        calls.push(values.length)
        return { embeddings: values.map(() => [1]) }
      },
    })
    expect(embedder.maxBatch).toBe(96)
    expect(await embedder.embed(Array.from({ length: 100 }, String))).toHaveLength(100)
    expect(calls).toEqual([96, 4])
  },
)
