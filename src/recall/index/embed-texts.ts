import type { Clock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { untilAborted } from '../../base/until-aborted.ts'
import type { TextEmbedder } from '../embedder.ts'

export interface EmbedOptions {
  signal: AbortSignal
  /** The call is rejected after this time, whether or not the embedder reacts to its signal. */
  timeoutMs: number
  clock: Clock
  /** The timer must not keep the process alive. */
  background?: boolean
  /** The dimension of the stored vectors. */
  dimension?: number
}

/** How long a search waits for the question's vector before it uses terms alone. */
const questionTimeoutMs = 10_000
/** For `cautiousMs` after a timeout it waits only `shortTimeoutMs`: a slow embedder would delay every run otherwise. */
const cautiousMs = 60_000
const shortTimeoutMs = 1_000

/** Chooses how long a search waits for an embedder. */
export class QuestionTimeout {
  readonly #clock: Clock
  #timedOutAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get ms(): number {
    return this.#clock.now() - this.#timedOutAt < cautiousMs ? shortTimeoutMs : questionTimeoutMs
  }

  recordFailure(error: unknown): void {
    if (isHeedError(error) && error.code === 'unreachable' && this.ms === questionTimeoutMs) this.#timedOutAt = this.#clock.now()
  }
}

/** One valid vector per text; anything else that the embedder returns is rejected with `provider_error`. */
export async function embedTexts(
  embedder: TextEmbedder, texts: readonly string[], { signal, timeoutMs, clock, background = false, dimension }: EmbedOptions,
): Promise<Float32Array[]> {
  signal.throwIfAborted()
  const timeout = new AbortController()
  const onTimeout = () => {
    timeout.abort(new HeedError('unreachable', `Embedder '${embedder.id}' took longer than ${timeoutMs / 1_000} s.`, { retryable: true }))
  }
  const timer = clock.after(timeoutMs, onTimeout, { background })
  try {
    const either = AbortSignal.any([timeout.signal, signal])
    return parseVectors(embedder, await untilAborted(embedder.embed(texts, either), either), texts.length, dimension)
  } finally {
    timer.cancel()
  }
}

function parseVectors({ id }: TextEmbedder, returned: ArrayLike<number>[], count: number, dimension: number | undefined): Float32Array[] {
  const invalid = (what: string) => new HeedError('provider_error', `Embedder '${id}' ${what}.`, { retryable: true })
  if (!Array.isArray(returned) || returned.length !== count || !returned.every(isVector)) throw invalid(`did not return ${count} vectors`)
  const vectors = returned.map((vector) => Float32Array.from(vector))
  const length = vectors[0]?.length ?? 0
  for (const vector of vectors) {
    if (vector.length !== length || length === 0) {
      throw invalid(`returned a vector of ${vector.length} numbers where ${length || 'some'} were expected`)
    }
    if (!vector.every(Number.isFinite) || vector.every((number) => number === 0)) {
      throw invalid('returned a vector of zeros, or with a number that is not finite')
    }
  }
  if (dimension !== undefined && length !== dimension) throw dimensionChanged(id, length, dimension)
  return vectors
}

/** The embedder has the id of the stored vectors, and its vectors cannot be compared with them. */
function dimensionChanged(id: string, given: number, dimension: number): HeedError {
  const why = `Embedder '${id}' returns vectors of ${given} numbers, and the stored ones have ${dimension}.`
    + ' If that is intended, make all vectors again: reindex().'
  return new HeedError('dimension_changed', why, { details: { embedder: id, dimension, given } })
}

function isVector(vector: unknown): boolean {
  return typeof vector === 'object' && vector !== null && 'length' in vector
}
