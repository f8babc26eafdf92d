import type { Collection, Lengths } from '../rank/collection.ts'
import { mostPassages } from '../text/passages.ts'
import { lengthsOf } from '../rank/words-score.ts'
import type { Statements } from '../../store/sql/statements.ts'
import { move, movesOf, type Move, type Splice } from './splices.ts'

interface PassageRow {
  key: number
  thread: number
  words: number
  question: number
  role: number
  createdAt: number
}

const columns = 'key, thread, words, question, role, created_at AS createdAt'

/** Words in so many passages are frequent, and so many of them are remembered. */
const leastFrequent = 2_000
const mostFrequent = 2_000

/** The passages of one resource, in the order of their keys. */
export class ResourceCollection implements Collection {
  readonly resource: number
  count = 0
  threads = 0
  keys = new Float64Array(0)
  length = new Uint16Array(0)
  thread = new Int32Array(0)
  previous = new Int32Array(0)
  next = new Int32Array(0)
  question = new Uint8Array(0)
  /** The number of its role in `roles`. */
  role = new Uint8Array(0)
  createdAt = new Float64Array(0)
  /** The keys of threads, by their number here. */
  threadKeys: number[] = []
  #numbers = new Map<number, number>()
  #last: number[] = []
  #lengths: Lengths | undefined
  readonly #frequent = new Map<string, number>()
  /** How many passages there were when these were counted. */
  #frequentOf = 0

  constructor(index: Statements, resource: number) {
    this.resource = resource
    const rows = index.all<PassageRow>(`SELECT ${columns} FROM passages WHERE resource = ? ORDER BY key`, resource)
    this.#reserve(rows.length)
    for (const row of rows) this.#append(row)
  }

  /** Of what is here now; counted once for all searches. */
  get lengths(): Lengths {
    this.#lengths ??= lengthsOf(this)
    return this.#lengths
  }

  /** In how many passages a word is. Of those that are in many it is known for a while, about: to count them takes as long as to read them. */
  counted(token: string, count: () => number): number {
    if (Math.abs(this.count - this.#frequentOf) > this.count / 32) {
      this.#frequent.clear()
      this.#frequentOf = this.count
    }
    const known = this.#frequent.get(token)
    if (known !== undefined) return known
    const counted = count()
    if (counted >= leastFrequent && this.#frequent.size < mostFrequent) this.#frequent.set(token, counted)
    return counted
  }

  get bytes(): number {
    return this.keys.byteLength * 4
  }

  /** Messages of which passages came, went or became others, by the keys of their first ones, in order. Answers how those that stay moved. */
  follow(index: Statements, firsts: readonly number[]): Move[] {
    this.#lengths = undefined
    const changes = firsts.map((first) => {
      const rows = index.all<PassageRow>(`SELECT ${columns} FROM passages WHERE key >= ? AND key < ? AND resource = ? ORDER BY key`, first, first + mostPassages, this.resource)
      const at = this.#from(first)
      return { at, removed: this.#from(first + mostPassages) - at, rows }
    })
    const isSame = ({ at, removed, rows }: (typeof changes)[number]) => removed === rows.length
      && rows.every(({ key, thread }, place) => this.keys[at + place] === key && this.threadKeys[this.thread[at + place] ?? -1] === thread)
    const others = changes.filter((change) => !isSame(change))
    for (const { at, rows } of changes.filter(isSame)) for (const [place, row] of rows.entries()) this.#describe(at + place, row)
    if (others.every(({ at }) => at === this.count)) {
      this.#reserve(this.count + others.reduce((sum, { rows }) => sum + rows.length, 0))
      for (const { rows } of others) for (const row of rows) this.#append(row)
      return []
    }
    const splices = others.map(({ at, removed, rows }): Splice => ({ at, removed, added: rows.length }))
    const moves = movesOf(splices, this.count)
    this.#reserve(this.count + splices.reduce((sum, { added }) => sum + added, 0))
    for (const list of [this.keys, this.length, this.thread, this.question, this.role, this.createdAt]) move(list, moves)
    let shift = 0
    for (const { at, removed, rows } of others) {
      for (const [place, row] of rows.entries()) this.#describe(at + shift + place, row)
      shift += rows.length - removed
    }
    this.count += shift
    this.#link()
    return moves
  }

  /** The number of a passage; -1 when it isn't here. */
  find(key: number): number {
    const at = this.#from(key)
    return at < this.count && this.keys[at] === key ? at : -1
  }

  /** The numbers of a message's passages, by the key of its first: from the one to before the other. */
  rangeOf(first: number): [from: number, to: number] {
    return [this.#from(first), this.#from(first + mostPassages)]
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

  /** The number of the first passage with this key or a later one. */
  #from(key: number): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.keys[middle] ?? 0) < key) low = middle + 1
      else high = middle
    }
    return low
  }

  #append(row: PassageRow): void {
    const at = this.count
    this.#describe(at, row)
    this.#linkTo(at, this.thread[at] ?? 0)
    this.count += 1
  }

  #describe(at: number, { key, thread, words, question, role, createdAt }: PassageRow): void {
    this.keys[at] = key
    this.length[at] = words
    this.thread[at] = this.#numberOf(thread)
    this.question[at] = question
    this.role[at] = role
    this.createdAt[at] = createdAt
  }

  #numberOf(thread: number): number {
    let number = this.#numbers.get(thread)
    if (number === undefined) {
      number = this.threadKeys.push(thread) - 1
      this.#numbers.set(thread, number)
      this.threads = this.threadKeys.length
    }
    return number
  }

  /** Who follows whom, anew; threads of which nothing is left have no number. */
  #link(): void {
    const before = this.threadKeys
    const renumbered = new Int32Array(before.length).fill(-1)
    this.threadKeys = []
    this.#numbers = new Map()
    this.threads = 0
    this.#last = []
    for (let at = 0; at < this.count; at += 1) {
      const was = this.thread[at] ?? 0
      if (renumbered[was] === -1) renumbered[was] = this.#numberOf(before[was] ?? 0)
      this.thread[at] = renumbered[was] ?? 0
      this.#linkTo(at, this.thread[at] ?? 0)
    }
  }

  #linkTo(at: number, of: number): void {
    const before = this.#last[of] ?? -1
    this.previous[at] = before
    this.next[at] = -1
    if (before >= 0) this.next[before] = at
    this.#last[of] = at
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
    this.role = grown(this.role, new Uint8Array(size))
    this.createdAt = grown(this.createdAt, new Float64Array(size))
  }
}

function grown<Numbers extends Float64Array | Uint16Array | Int32Array | Uint8Array>(before: Numbers, after: Numbers): Numbers {
  after.set(before)
  return after
}
