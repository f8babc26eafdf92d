import type { TurnOptions } from '../contract.ts'

/** A turn began, more of its samples are there, or it ended. */
export type TurnEvent = { type: 'begin' } | { type: 'samples'; pcm: Uint8Array } | { type: 'end' }

/** The loudness is measured over so many milliseconds. */
const frameMs = 20
/** The sound before speech was recognized is part of the turn, with so much of a margin. */
const marginMs = 300

/** Finds turns in samples of 16 bits. Time is counted in samples, so that it depends on nothing but the sound. */
export class TurnDetector {
  readonly #options: Required<TurnOptions>
  readonly #frameBytes: number
  /** Bytes that are not a whole frame yet. */
  #rest: Uint8Array = new Uint8Array()
  /** Of a turn, the frames that were not given out; before it, the last ones. */
  #frames: Uint8Array[] = []
  #inTurn = false
  #turnMs = 0
  #speechMs = 0
  #silenceMs = 0

  constructor(rate: number, options: Required<TurnOptions>) {
    this.#options = options
    this.#frameBytes = 2 * Math.round((rate * frameMs) / 1_000)
  }

  get inTurn(): boolean {
    return this.#inTurn
  }

  /** Reads samples. A sample may be divided between two calls. */
  push(bytes: Uint8Array): TurnEvent[] {
    const events: TurnEvent[] = []
    let data = bytes
    if (this.#rest.length > 0) {
      data = joined([this.#rest, bytes])
      // A turn that ends within these bytes ends with its frames.
      this.#rest = new Uint8Array()
    }
    let at = 0
    for (; at + this.#frameBytes <= data.length; at += this.#frameBytes) {
      // A copy: the caller may write into its buffer again.
      events.push(...this.#frame(data.slice(at, at + this.#frameBytes)))
    }
    this.#rest = data.slice(at)
    return [...events, ...this.#samples()]
  }

  /** Begins a turn with the last sound. Empty where one has begun. */
  begin(): TurnEvent[] {
    if (this.#inTurn) return []
    this.#inTurn = true
    this.#turnMs = this.#frames.length * frameMs
    this.#silenceMs = 0
    return [{ type: 'begin' }, ...this.#samples()]
  }

  /** Ends the turn. Empty where there is none. */
  end(): TurnEvent[] {
    if (!this.#inTurn) return []
    this.#frames.push(this.#rest.slice(0, this.#rest.length - (this.#rest.length % 2)))
    this.#rest = new Uint8Array()
    const last = this.#samples()
    this.#inTurn = false
    this.#speechMs = 0
    return [...last, { type: 'end' }]
  }

  #frame(frame: Uint8Array): TurnEvent[] {
    const { detect, level, speechMs, silenceMs, maxMs } = this.#options
    const speaks = detect === 'energy' && loudness(frame) >= level
    this.#frames.push(frame)
    if (!this.#inTurn) {
      // A pause within a word is shorter than the word: it delays the begin, and does not reset it.
      this.#speechMs = Math.max(0, this.#speechMs + (speaks ? frameMs : -frameMs))
      const kept = Math.ceil((speechMs + marginMs) / frameMs)
      if (this.#frames.length > kept) this.#frames.splice(0, this.#frames.length - kept)
      return this.#speechMs >= speechMs && speaks ? this.begin() : []
    }
    this.#turnMs += frameMs
    this.#silenceMs = speaks ? 0 : this.#silenceMs + frameMs
    return (detect === 'energy' && this.#silenceMs >= silenceMs) || this.#turnMs >= maxMs ? this.end() : []
  }

  /** The samples of the turn that were not given out yet. */
  #samples(): TurnEvent[] {
    if (!this.#inTurn) return []
    const pcm = joined(this.#frames)
    this.#frames = []
    return pcm.length === 0 ? [] : [{ type: 'samples', pcm }]
  }
}

/** The root of the mean square of the samples, from 0 to 1. */
function loudness(frame: Uint8Array): number {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  let sum = 0
  for (let at = 0; at < frame.length; at += 2) sum += view.getInt16(at, true) ** 2
  return Math.sqrt(sum / (frame.length / 2)) / 32_768
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
