import type { Clock } from '../../base/clock.ts'
import { isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import { retryAfter } from '../../base/retry-after.ts'

const first = 500
const longest = 60_000
/** What a service may ask for. */
const longestAsked = 3_600_000
/** So many failures in a row, and whoever waits is told. */
const enough = 5
/** What a service answers when it won't take a text, and would take another. */
const refusals = new Set([400, 413, 414, 422])

/** Rubbish for an answer. Other failures that have a name, such as a missing key or no answer at all, are no text's. */
const mayBeOfTexts: ReadonlySet<HeedErrorCode> = new Set(['provider_error', 'dimension_changed'])

/** When an embedder is asked again after it failed: later each time it does, and not before it asked to be. */
export class EmbedderPause {
  readonly #clock: Clock
  #inARow = 0
  #isAsked = false
  #until = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Until then it is left alone; it may be over. */
  get until(): number {
    return this.#until
  }

  get isOver(): boolean {
    return this.#clock.now() >= this.#until
  }

  /** Nobody should wait for it. */
  get isHopeless(): boolean {
    return this.#inARow >= enough || this.#until - this.#clock.now() > longest
  }

  /** Whether it can be that only one of these texts is at fault. Then smaller lots find out which: that is no failure more, until one of them fails alone. */
  failed(error: unknown, texts: number): boolean {
    const { statusCode, isRetryable, responseHeaders } = readable(error)
    const isNamed = isHeedError(error) && !mayBeOfTexts.has(error.code)
    const ofTexts = !isNamed && isRetryable !== true && (statusCode === undefined || refusals.has(statusCode))
    if (!ofTexts || texts === 1) this.#inARow += 1
    const now = this.#clock.now()
    const asked = retryAfter(responseHeaders, now)
    const own = Math.min(longest, first * 2 ** Math.max(0, this.#inARow - 1)) * (0.5 + Math.random() / 2)
    this.#isAsked = asked !== undefined
    this.#until = now + (asked === undefined ? own : Math.min(asked, longestAsked) + own * 0.1)
    return ofTexts
  }

  /** Somebody wants to know now. What its service asked for holds. */
  shorten(): void {
    this.#inARow = 0
    if (!this.#isAsked) this.#until = Number.NEGATIVE_INFINITY
  }

  end(): void {
    this.#isAsked = false
    this.shorten()
  }
}

interface ServiceFailure {
  statusCode?: number
  isRetryable?: boolean
  responseHeaders?: Record<string, string>
}

/** It is a stranger's object: reading it may throw. */
function readable(error: unknown): ServiceFailure {
  if (typeof error !== 'object' || error === null) return {}
  try {
    const { statusCode, isRetryable, responseHeaders } = (isHeedError(error) && typeof error.cause === 'object' && error.cause !== null ? error.cause : error) as ServiceFailure
    return {
      ...(typeof statusCode === 'number' && { statusCode }),
      ...(typeof isRetryable === 'boolean' && { isRetryable }),
      ...(typeof responseHeaders === 'object' && { responseHeaders }),
    }
  } catch {
    return {}
  }
}
