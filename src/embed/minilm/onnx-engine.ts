import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { bertAsOnnx, readSafetensors, type BertConfig } from './onnx-model.ts'
import { WordPieces, type TokenizerFile } from './word-pieces.ts'

/** The default export of a package of weights: the paths of its files. */
export interface ModelFiles {
  weightsPath: string
  tokenizerPath: string
  configPath: string
  maxTokens: number
}

/** The part of `onnxruntime-node` that is used here. */
export interface OnnxRuntime {
  Tensor: new (type: 'int64', data: BigInt64Array, dims: number[]) => unknown
  InferenceSession: {
    create(
      model: Uint8Array,
      options: { intraOpNumThreads: number; logSeverityLevel: number },
    ): Promise<{ run(inputs: Record<string, unknown>): Promise<Record<string, { data: ArrayLike<number> }>> }>
  }
}

/**
 * Runs the model of these files on ONNX Runtime. The vector of a text is the mean of those of its words: unlike that of the other engine,
 * it leaves out punctuation and the marks at both ends, and common words count less. With `weighted: false` it is that of the other engine.
 */
export async function onnxEngine(
  { Tensor, InferenceSession }: OnnxRuntime,
  files: ModelFiles,
  { weighted = true } = {},
): Promise<{ embed(texts: string[]): Promise<number[][]> }> {
  const [weights, tokenizer, config] = await Promise.all(
    [files.weightsPath, files.tokenizerPath, files.configPath].map((path) => readFile(path)),
  )
  if (!weights || !tokenizer || !config) throw new Error('a file of the weights is missing')
  const pieces = new WordPieces(JSON.parse(tokenizer.toString('utf8')) as TokenizerFile)
  const { model, output } = bertAsOnnx(readSafetensors(weights), JSON.parse(config.toString('utf8')) as BertConfig)
  // Leaves half of the processors to the rest of the program.
  const session = await InferenceSession.create(model, {
    intraOpNumThreads: Math.max(1, Math.floor(availableParallelism() / 2)),
    logSeverityLevel: 3,
  })
  const numbers = (values: readonly number[]) => new Tensor('int64', BigInt64Array.from(values, BigInt), [values.length])
  return {
    async embed(texts) {
      const vectors: number[][] = []
      for (const text of texts) {
        const ids = pieces.encode(text, files.maxTokens)
        const result = await session.run({ pieces: numbers(ids), positions: numbers(ids.map((_, position) => position)) })
        vectors.push(meanOf(result[output]?.data ?? [], ids.map((id) => (weighted ? pieces.weight(id) : 1))))
      }
      return vectors
    },
  }
}

/** The weighted mean of the states of all pieces, scaled to length 1. A text without a word has the mean of what it has. */
function meanOf(states: ArrayLike<number>, weights: readonly number[]): number[] {
  const size = states.length / weights.length
  const hasWords = weights.some((weight) => weight > 0)
  const sum = new Float64Array(size)
  for (const [piece, weight] of weights.entries()) {
    if (hasWords && weight === 0) continue
    for (let n = 0; n < size; n += 1) sum[n] = (sum[n] as number) + (hasWords ? weight : 1) * (states[piece * size + n] as number)
  }
  const length = Math.hypot(...sum) || 1
  return Array.from(sum, (number) => number / length)
}
