import type { AnyEmbeddingModel } from '../../src/index.ts'

/** Dogs point one way, everything else another. */
export const dogs: AnyEmbeddingModel = {
  specificationVersion: 'v4',
  provider: 'test',
  modelId: 'dogs',
  maxEmbeddingsPerCall: 16,
  doEmbed: async ({ values }) => ({ embeddings: values.map((text) => (/dog|hound|puppy/i.test(text) ? [1, 0.1] : [0.1, 1])) }),
}
