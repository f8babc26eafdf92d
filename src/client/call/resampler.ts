/** So many zero crossings of the filter are on each side of a sample. */
const crossings = 16
/** Filters of so many positions between two samples are kept; for more of them, each is computed when it is used. */
const maxKept = 1_024

/** Changes the rate of a sound that comes in pieces: a windowed sinc, so that what the new rate can't carry does not become a noise. */
export class Resampler {
  readonly #from: number
  readonly #to: number
  /** The share of the sound's band that the new rate carries. */
  readonly #band: number
  readonly #half: number
  /** So many positions between two samples occur. */
  readonly #phases: number
  readonly #filters = new Map<number, Float32Array>()
  /** The samples from `#at` on. What is before the first sample is silence. */
  #samples: Float32Array
  #at: number
  #received = 0
  #given = 0

  constructor(from: number, to: number) {
    const divisor = greatestDivisor(from, to)
    this.#from = from / divisor
    this.#to = to / divisor
    this.#band = Math.min(1, to / from)
    this.#half = Math.ceil(crossings / this.#band)
    this.#phases = this.#to
    this.#samples = new Float32Array(this.#half)
    this.#at = -this.#half
  }

  /** Adds samples, and returns those of the new rate that are known by them. */
  push(samples: Float32Array): Float32Array {
    if (this.#from === this.#to) return samples
    this.#received += samples.length
    this.#append(samples)
    // The filter reaches beyond the place of a new sample.
    return this.#take(this.#at + this.#samples.length - this.#half)
  }

  /** The last samples: no more follow. */
  end(): Float32Array {
    if (this.#from === this.#to) return new Float32Array()
    this.#append(new Float32Array(this.#half))
    return this.#take(this.#received)
  }

  #append(samples: Float32Array): void {
    const joined = new Float32Array(this.#samples.length + samples.length)
    joined.set(this.#samples)
    joined.set(samples, this.#samples.length)
    this.#samples = joined
  }

  /** The new samples whose places are before this old one. */
  #take(end: number): Float32Array {
    const last = Math.ceil((end * this.#to) / this.#from)
    const taken = new Float32Array(Math.max(0, last - this.#given))
    for (let index = 0; index < taken.length; index++) taken[index] = this.#sampleAt(this.#given + index)
    this.#given += taken.length
    const next = Math.floor((this.#given * this.#from) / this.#to) - this.#half
    if (next > this.#at) {
      this.#samples = this.#samples.slice(next - this.#at)
      this.#at = next
    }
    return taken
  }

  #sampleAt(index: number): number {
    const place = index * this.#from
    const before = Math.floor(place / this.#to)
    const filter = this.#filter(place % this.#to)
    const first = before - this.#half + 1 - this.#at
    let sum = 0
    for (let tap = 0; tap < filter.length; tap++) sum += (this.#samples[first + tap] ?? 0) * (filter[tap] ?? 0)
    return sum
  }

  #filter(phase: number): Float32Array {
    const kept = this.#filters.get(phase)
    if (kept) return kept
    const filter = new Float32Array(2 * this.#half)
    let sum = 0
    for (let tap = 0; tap < filter.length; tap++) {
      const distance = tap - this.#half + 1 - phase / this.#to
      const weight = sinc(distance * this.#band) * window(distance / this.#half)
      filter[tap] = weight
      sum += weight
    }
    // So that a constant stays what it is.
    for (let tap = 0; tap < filter.length; tap++) filter[tap] = (filter[tap] ?? 0) / sum
    if (this.#phases <= maxKept) this.#filters.set(phase, filter)
    return filter
  }
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)
}

/** By Blackman. */
function window(x: number): number {
  return Math.abs(x) >= 1 ? 0 : 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x)
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b)
}

/** Samples from −1 to 1 as samples of 16 bits, little-endian. Louder ones are clipped. */
export function toBytes(samples: Float32Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(samples.length * 2)
  const view = new DataView(bytes.buffer)
  for (let index = 0; index < samples.length; index++) {
    view.setInt16(index * 2, Math.round(Math.max(-1, Math.min(1, samples[index] ?? 0)) * 32_767), true)
  }
  return bytes
}

/** Samples of 16 bits, little-endian, as samples from −1 to 1. */
export function fromBytes(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const samples = new Float32Array(bytes.length >> 1)
  for (let index = 0; index < samples.length; index++) samples[index] = view.getInt16(index * 2, true) / 32_768
  return samples
}
