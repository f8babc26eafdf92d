import { retryAfter, type Clock } from '../../base/clock.ts'
import { isHeedError, type HeedErrorCode } from '../../base/errors.ts'

const firstDelayMs = 500
const maxDelayMs = 60_000
/** The longest `Retry-After` that is honored. */
const maxRetryAfterMs = 3_600_000
/** After so many failures in a row, callers that wait are rejected. */
const maxFailures = 5
/** HTTP statuses with which a service rejects a text, and might accept another one. */
const textRejections = new Set([400, 413, 414, 422])

/** Codes that one of the texts may have caused. Other codes, such as a missing key or a timeout, never depend on a text. */
const mayDependOnText: ReadonlySet<HeedErrorCode> = new Set(['provider_error', 'dimension_changed'])

/** Decides when an embedder is called again after a failure: exponentially later, and not before its `Retry-After`. */
export class EmbedderBackoff {
  readonly #clock: Clock
  #failures = 0
  /** The service sent `Retry-After`. */
  #isRequested = false
  #until = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The time of the next call; it may be past. */
  get until(): number {
    return this.#until
  }

  get isOver(): boolean {
    return this.#clock.now() >= this.#until
  }

  /** Callers should not wait for the embedder: it failed too often, or the next call is too far away. */
  get isHopeless(): boolean {
    return this.#failures >= maxFailures || this.#until - this.#clock.now() > maxDelayMs
  }

  /**
   * Records a failed call with `texts` texts. Returns true when a single text may have caused it: smaller batches then find out which one.
   * Such a failure only counts when the text was alone.
   */
  recordFailure(error: unknown, texts: number): boolean {
    const { statusCode, isRetryable, responseHeaders } = readFailure(error)
    const isGeneral = isHeedError(error) && !mayDependOnText.has(error.code)
    const dependsOnText = !isGeneral && isRetryable !== true && (statusCode === undefined || textRejections.has(statusCode))
    if (!dependsOnText || texts === 1) this.#failures += 1
    const now = this.#clock.now()
    const requested = retryAfter(responseHeaders, now)
    const own = Math.min(maxDelayMs, firstDelayMs * 2 ** Math.max(0, this.#failures - 1)) * (0.5 + Math.random() / 2)
    this.#isRequested = requested !== undefined
    this.#until = now + (requested === undefined ? own : Math.min(requested, maxRetryAfterMs) + own * 0.1)
    return dependsOnText
  }

  /** Retries at once for a caller that waits, unless the service sent `Retry-After`. */
  shorten(): void {
    this.#failures = 0
    if (!this.#isRequested) this.#until = Number.NEGATIVE_INFINITY
  }

  /** Ends the backoff after a success, or for another embedder. */
  reset(): void {
    this.#isRequested = false
    this.shorten()
  }
}

interface ServiceFailure {
  statusCode?: number
  isRetryable?: boolean
  responseHeaders?: Record<string, string>
}

/** The fields of an error of the AI SDK. Its getters are foreign code and may throw. */
function readFailure(error: unknown): ServiceFailure {
  if (typeof error !== 'object' || error === null) return {}
  try {
    const { statusCode, isRetryable, responseHeaders } = (
      isHeedError(error) && typeof error.cause === 'object' && error.cause !== null ? error.cause : error
    ) as ServiceFailure
    return {
      ...(typeof statusCode === 'number' && { statusCode }),
      ...(typeof isRetryable === 'boolean' && { isRetryable }),
      ...(typeof responseHeaders === 'object' && { responseHeaders }),
    }
  } catch {
    return {}
  }
}
