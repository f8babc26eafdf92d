import type { Clock } from '../../base/clock.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import type { TextEmbedder } from '../embedder.ts'

export interface MakingVectors {
  signal: AbortSignal
  /** For so long it is waited for, whether or not the embedder hears the signal. */
  patienceMs: number
  clock: Clock
  /** Nobody waits for it. */
  background?: boolean
  /** What those that are stored have. */
  dimension?: number
}

/** A question waits so long for its vector; then words have to do. */
const questionMs = 10_000
/** For so long after it waited in vain, it waits only this long: each run would be held up otherwise. */
const afterwardsMs = 60_000
const impatientMs = 1_000

/** How long a search waits for an embedder. */
export class Patience {
  readonly #clock: Clock
  #lateAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get ms(): number {
    return this.#clock.now() - this.#lateAt < afterwardsMs ? impatientMs : questionMs
  }

  failed(error: unknown): void {
    if (isHeedError(error) && error.code === 'unreachable' && this.ms === questionMs) this.#lateAt = this.#clock.now()
  }
}

/** One vector of each text, all of which can be used; anything else is refused as a failure of the embedder. */
export async function madeVectors(embedder: TextEmbedder, texts: readonly string[], { signal, patienceMs, clock, background = false, dimension }: MakingVectors): Promise<Float32Array[]> {
  signal.throwIfAborted()
  const late = new AbortController()
  const timer = clock.after(patienceMs, () => late.abort(new HeedError('unreachable', `Embedder '${embedder.id}' took longer than ${patienceMs / 1_000} s.`, { retryable: true })), { background })
  try {
    const either = AbortSignal.any([late.signal, signal])
    return checked(embedder, await unlessAborted(embedder.embed(texts, either), either), texts.length, dimension)
  } finally {
    timer.cancel()
  }
}

function checked({ id }: TextEmbedder, answered: ArrayLike<number>[], count: number, dimension: number | undefined): Float32Array[] {
  const wrong = (what: string) => new HeedError('provider_error', `Embedder '${id}' ${what}.`, { retryable: true })
  if (!Array.isArray(answered) || answered.length !== count || !answered.every(isVector)) throw wrong(`did not answer with ${count} vectors`)
  const vectors = answered.map((vector) => Float32Array.from(vector))
  const length = vectors[0]?.length ?? 0
  for (const vector of vectors) {
    if (vector.length !== length || length === 0) throw wrong(`made a vector of ${vector.length} numbers where ${length || 'some'} were expected`)
    if (!vector.every(Number.isFinite) || vector.every((number) => number === 0)) throw wrong('made a vector that points nowhere')
  }
  if (dimension !== undefined && length !== dimension) throw dimensionChanged(id, length, dimension)
  return vectors
}

/** The same name, and vectors that can't be compared with those that are stored. */
function dimensionChanged(id: string, given: number, dimension: number): HeedError {
  const why = `Embedder '${id}' makes vectors of ${given} numbers, and those that are stored have ${dimension}. If that is meant, make them all anew: reindex().`
  return new HeedError('dimension_changed', why, { details: { embedder: id, dimension, given } })
}

function isVector(vector: unknown): boolean {
  return typeof vector === 'object' && vector !== null && 'length' in vector
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
