import type { Chunk } from '../run/chunk.ts'
import type { RunCommit, RunCommitted, RunHost } from '../run/loop/run-host.ts'

/** A run that belongs to one call and to no thread: nothing is stored, nothing can enter. */
export class EphemeralHost implements RunHost {
  readonly lanes = []
  readonly #emit: (chunk: Chunk) => void
  readonly #closing: AbortSignal

  /** `closing` aborts when the process stops running: the run then ends with its reason, as one on a thread does. */
  constructor(emit: (chunk: Chunk) => void, closing: AbortSignal) {
    this.#emit = emit
    this.#closing = closing
  }

  emit(chunk: Chunk): void {
    this.#emit(chunk)
  }

  async commit(commit: RunCommit): Promise<RunCommitted> {
    this.#closing.throwIfAborted()
    return { entered: [], ended: commit.end !== undefined }
  }

  async reviseInput(): Promise<void> {}

  async history(): Promise<[]> {
    return []
  }

  async laneRows(): Promise<{ rows: []; left: number }> {
    return { rows: [], left: 0 }
  }
}
