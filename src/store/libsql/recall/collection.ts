import type { Collection, Lengths } from '../../../recall/collection.ts'
import { lengthsOf } from '../../../recall/words-score.ts'
import type { Statements } from '../statements.ts'

interface PassageRow {
  key: number
  thread: number
  words: number
  question: number
}

/** The passages of one resource, in the order of their keys. Grows at its end. */
export class ResourceCollection implements Collection {
  readonly resource: number
  /** Of the resource, when this was read. */
  version: number
  count = 0
  threads = 0
  keys = new Float64Array(0)
  length = new Uint16Array(0)
  thread = new Int32Array(0)
  previous = new Int32Array(0)
  next = new Int32Array(0)
  question = new Uint8Array(0)
  /** The keys of threads, by their number here. */
  readonly threadKeys: number[] = []
  readonly #numbers = new Map<number, number>()
  readonly #last: number[] = []
  #lengths: Lengths = { total: 0, totalOfPairs: 0, lengths: [] }
  #lengthsAt = 0

  constructor(index: Statements, resource: number, version: number) {
    this.resource = resource
    this.version = version
    const rows = index.all<PassageRow>('SELECT key, thread, words, question FROM passages WHERE resource = ? ORDER BY key', resource)
    this.#reserve(rows.length)
    for (const row of rows) this.#add(row)
  }

  /** Of what is here now; counted once for all searches. */
  get lengths(): Lengths {
    if (this.#lengthsAt !== this.count) {
      this.#lengths = lengthsOf(this)
      this.#lengthsAt = this.count
    }
    return this.#lengths
  }

  get bytes(): number {
    return this.keys.byteLength * 3
  }

  /** Passages that came. False when they don't all come after those that are here. */
  append(index: Statements, keys: readonly number[]): boolean {
    const ordered = keys.toSorted((a, b) => a - b)
    const [first] = ordered
    if (first !== undefined && this.count > 0 && first <= (this.keys[this.count - 1] ?? 0)) return false
    this.#reserve(this.count + ordered.length)
    for (const key of ordered) {
      const row = index.one<PassageRow>('SELECT key, thread, words, question FROM passages WHERE key = ?', key)
      if (row) this.#add(row)
    }
    return true
  }

  /** The number of a passage; -1 when it isn't here. */
  find(key: number): number {
    let low = 0
    let high = this.count - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const there = this.keys[middle] ?? 0
      if (there === key) return middle
      if (there < key) low = middle + 1
      else high = middle - 1
    }
    return -1
  }

  /** The numbers of passages whose keys are in order; those that aren't here are left out. */
  findAll(keys: readonly number[]): Int32Array {
    const found = new Int32Array(keys.length)
    const { count } = this
    let size = 0
    let low = 0
    for (const key of keys) {
      // In steps that double, and back: neighbours are found at once.
      let step = 1
      while (low + step < count && (this.keys[low + step] as number) < key) {
        low += step
        step *= 2
      }
      let high = Math.min(count - 1, low + step)
      while (low < high) {
        const middle = (low + high) >>> 1
        if ((this.keys[middle] as number) < key) low = middle + 1
        else high = middle
      }
      if (this.keys[low] === key) found[size++] = low
    }
    return found.subarray(0, size)
  }

  threadNumber(key: number): number | undefined {
    return this.#numbers.get(key)
  }

  #add({ key, thread, words, question }: PassageRow): void {
    let of = this.#numbers.get(thread)
    if (of === undefined) {
      of = this.threadKeys.push(thread) - 1
      this.#numbers.set(thread, of)
      this.threads = this.threadKeys.length
    }
    const at = this.count
    const before = this.#last[of] ?? -1
    this.keys[at] = key
    this.length[at] = words
    this.thread[at] = of
    this.question[at] = question
    this.previous[at] = before
    this.next[at] = -1
    if (before >= 0) this.next[before] = at
    this.#last[of] = at
    this.count += 1
  }

  #reserve(count: number): void {
    if (count <= this.keys.length) return
    const size = Math.max(64, Math.ceil(count * 1.25))
    this.keys = grown(this.keys, new Float64Array(size))
    this.length = grown(this.length, new Uint16Array(size))
    this.thread = grown(this.thread, new Int32Array(size))
    this.previous = grown(this.previous, new Int32Array(size))
    this.next = grown(this.next, new Int32Array(size))
    this.question = grown(this.question, new Uint8Array(size))
  }
}

function grown<Numbers extends Float64Array | Uint16Array | Int32Array | Uint8Array>(before: Numbers, after: Numbers): Numbers {
  after.set(before)
  return after
}
