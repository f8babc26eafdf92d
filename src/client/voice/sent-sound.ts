/** What a page said, in order: sound, or that its user began or ended a turn. */
export type Said = Uint8Array | 'begin' | 'end'

interface Place {
  /** Where it stands in all bytes of the session. */
  at: number
  said: Said
}

/** The sound that the server has not confirmed yet, so that it can be sent again after a connection was lost. */
export class SentSound {
  readonly #maxBytes: number
  #places: Place[] = []
  /** All bytes that were written. */
  #end = 0
  /** The bytes before this are confirmed, or were dropped. */
  #begin = 0
  /** The bytes that the server has. */
  #confirmed = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The bytes that are not confirmed. */
  get unconfirmed(): number {
    return this.#end - this.#begin
  }

  /** Adds to it. Returns how many bytes had to be dropped: the oldest, where there are too many. */
  add(said: Said): number {
    this.#places.push({ at: this.#end, said })
    if (typeof said !== 'string') this.#end += said.length
    let dropped = 0
    while (this.unconfirmed > this.#maxBytes) {
      const first = this.#places.shift()
      if (!first || typeof first.said === 'string') continue
      const left = first.at + first.said.length - this.#begin
      dropped += left
      this.#begin += left
    }
    return dropped
  }

  /** The server has so many bytes. */
  confirm(bytes: number): void {
    this.#confirmed = Math.max(this.#confirmed, Math.min(bytes, this.#end))
    this.#begin = Math.max(this.#begin, this.#confirmed)
    // A mark at the very end may not be there yet: to begin a turn again changes nothing.
    this.#places = this.#places.filter(({ at, said }) => (typeof said === 'string' ? at >= this.#begin : at + said.length > this.#begin))
  }

  /** What to send to a server that has so many bytes: first how many are lost, then what follows. */
  after(bytes: number): { lost: number; said: Said[] } {
    this.confirm(bytes)
    return { lost: this.#begin - this.#confirmed, said: this.#places.map((place) => restOf(place, this.#begin)) }
  }

  /** Another session begins, which has nothing. It gets what was not confirmed. */
  restart(): void {
    const first = this.#begin
    this.#places = this.#places.map((place) => ({ at: Math.max(0, place.at - first), said: restOf(place, first) }))
    this.#end -= first
    this.#begin = 0
    this.#confirmed = 0
  }
}

/** What is left of it from this byte on. */
function restOf({ at, said }: Place, from: number): Said {
  return typeof said === 'string' || at >= from ? said : said.subarray(from - at)
}
