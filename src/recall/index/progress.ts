import type { RecallProgress } from '../../store/contract/recall.ts'

/** Who is told of progress. What they throw is theirs, and must neither stop the work nor be lost. */
export class Told {
  readonly #onProgress: ((progress: RecallProgress) => void) | undefined
  #thrown: { error: unknown } | undefined

  constructor(onProgress: ((progress: RecallProgress) => void) | undefined) {
    this.#onProgress = onProgress
  }

  tell(progress: RecallProgress): void {
    if (this.#thrown) return
    try {
      this.#onProgress?.(progress)
    } catch (error) {
      this.#thrown = { error }
    }
  }

  end(): void {
    if (this.#thrown) throw this.#thrown.error
  }
}
