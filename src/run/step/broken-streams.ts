import { sleep, type Clock } from '../../base/clock.ts'
import type { HeedError } from '../../base/errors.ts'
import type { ResolvedModel } from '../model/model.ts'
import { longestDelay, retryDelay } from '../model/provider-error.ts'

/** A stream that broke: which of the models that could be asked it came from, and how often each may be asked again. */
export interface BrokenStream {
  error: HeedError
  models: readonly ResolvedModel[]
  index: number
  maxRetries: number
}

/** How a run goes on after streams that broke: from which model of its list, and after what pause. */
export class BrokenStreams {
  #first = 0
  #inARow = 0
  #pause = 0

  /** The models to ask now, of all that the run has. */
  left(models: readonly ResolvedModel[]): readonly ResolvedModel[] {
    return this.#first === 0 ? models : models.slice(this.#first)
  }

  /** Counts a break, and says whether the run may go on: a model is asked again like one whose call failed, then the next is asked. */
  goesOn({ error, models, index, maxRetries }: BrokenStream, now: number): boolean {
    if (index > 0) this.#startAt(index)
    const delay = retryDelay(error, this.#inARow, now)
    if (error.retryable && this.#inARow < (models[index]?.maxRetries ?? maxRetries) && delay <= longestDelay) {
      this.#inARow++
      this.#pause = delay
      return true
    }
    if (index + 1 >= models.length) return false
    this.#startAt(1)
    return true
  }

  /** Waits as long as the last break asks for. */
  async pause(clock: Clock, signal: AbortSignal): Promise<void> {
    const ms = this.#pause
    this.#pause = 0
    if (ms > 0) await sleep(clock, ms, signal)
  }

  /** A stream came to its end. */
  reset(): void {
    this.#first = 0
    this.#inARow = 0
  }

  #startAt(index: number): void {
    this.#first += index
    this.#inARow = 0
  }
}
