import { HeedError } from '../base/errors.ts'
import type { BackgroundService } from '../thread/runtime/runnable.ts'
import { InFlight } from '../base/promises.ts'

/** A run without a thread, from the call that starts it until its last chunk. */
export interface EphemeralRun {
  /** Aborts when this process stops running, with the reason. */
  readonly closing: AbortSignal
  end(): void
}

/** Runs of which nothing is stored. No other process can continue them, so that they end with this one. */
export class EphemeralRuns implements BackgroundService {
  readonly #closing = new Set<AbortController>()
  readonly #inFlight = new InFlight()
  #closed = false

  /** The caller must call `end()` of what it gets. */
  begin(): EphemeralRun {
    if (this.#closed) throw new HeedError('closed', 'This Heed was closed. Ask the process that runs now.')
    const stop = new AbortController()
    this.#closing.add(stop)
    this.#inFlight.begin()
    return {
      closing: stop.signal,
      end: () => {
        if (this.#closing.delete(stop)) this.#inFlight.end()
      },
    }
  }

  /** Aborts all of them and rejects later ones. Resolves when the last has ended. */
  close(): Promise<void> {
    this.#closed = true
    const reason = new HeedError('closed', 'This Heed was closed.')
    for (const stop of this.#closing) stop.abort(reason)
    return this.#inFlight.whenIdle()
  }
}
