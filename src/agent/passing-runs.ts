import { HeedError } from '../base/errors.ts'
import type { Attendant } from '../thread/runtime/runnable.ts'
import { Underway } from '../base/in-flight.ts'

/** A run that has no thread, from when it is asked for until it said its last word. */
export interface PassingRun {
  /** Aborts when this process stops running, with the reason. */
  readonly closing: AbortSignal
  end(): void
}

/** Runs of which nothing is stored: no other process takes them up, so they end with this one. */
export class PassingRuns implements Attendant {
  readonly #closing = new Set<AbortController>()
  readonly #underway = new Underway()
  #closed = false

  /** Whoever begins one ends it. */
  begin(): PassingRun {
    if (this.#closed) throw new HeedError('closed', 'This Heed was closed. Ask the process that runs now.')
    const stop = new AbortController()
    this.#closing.add(stop)
    this.#underway.begin()
    return {
      closing: stop.signal,
      end: () => {
        if (this.#closing.delete(stop)) this.#underway.end()
      },
    }
  }

  /** Stops them all and refuses those that come later. Resolves when the last is over. */
  close(): Promise<void> {
    this.#closed = true
    const reason = new HeedError('closed', 'This Heed was closed.')
    for (const stop of this.#closing) stop.abort(reason)
    return this.#underway.settled()
  }

  /** No thread concerns them, and they wait for no time. */
  idle(): void {}

  look(): void {}
}
