import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { bertAsOnnx, type BertConfig } from './onnx-model.ts'
import { readSafetensors } from './safetensors.ts'
import { WordPieces, type TokenizerFile } from './word-pieces.ts'

/** Where a package of weights says that its files are. */
export interface ModelFiles {
  weightsPath: string
  tokenizerPath: string
  configPath: string
  maxTokens: number
}

/** As much of `onnxruntime-node` as is used here. */
export interface OnnxRuntime {
  Tensor: new (type: 'int64', data: BigInt64Array, dims: number[]) => unknown
  InferenceSession: {
    create(model: Uint8Array, options: { intraOpNumThreads: number; logSeverityLevel: number }): Promise<{ run(inputs: Record<string, unknown>): Promise<Record<string, { data: ArrayLike<number> }>> }>
  }
}

/** The model of these files on ONNX Runtime: the same vectors as those of the engine that is always there, in a fraction of the time. */
export async function onnxEngine({ Tensor, InferenceSession }: OnnxRuntime, files: ModelFiles): Promise<{ embed(texts: string[]): Promise<number[][]> }> {
  const [weights, tokenizer, config] = await Promise.all([files.weightsPath, files.tokenizerPath, files.configPath].map((path) => readFile(path)))
  if (!weights || !tokenizer || !config) throw new Error('the weights are not all there')
  const pieces = new WordPieces(JSON.parse(tokenizer.toString('utf8')) as TokenizerFile)
  const { model, output } = bertAsOnnx(readSafetensors(weights), JSON.parse(config.toString('utf8')) as BertConfig)
  // Others need processors too.
  const session = await InferenceSession.create(model, { intraOpNumThreads: Math.max(1, Math.floor(availableParallelism() / 2)), logSeverityLevel: 3 })
  const numbers = (values: readonly number[]) => new Tensor('int64', BigInt64Array.from(values, BigInt), [values.length])
  return {
    async embed(texts) {
      const vectors: number[][] = []
      for (const text of texts) {
        const ids = pieces.of(text, files.maxTokens)
        const answer = await session.run({ pieces: numbers(ids), places: numbers(ids.map((_, place) => place)) })
        vectors.push(unit(answer[output]?.data ?? []))
      }
      return vectors
    },
  }
}

function unit(vector: ArrayLike<number>): number[] {
  const values = Array.from(vector)
  const length = Math.hypot(...values) || 1
  return values.map((value) => value / length)
}
