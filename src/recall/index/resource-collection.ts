import { lengthsOf, type Collection } from '../rank/bm25.ts'
import { sessionsOf } from '../rank/sessions.ts'
import { worthOfAll, type Worth } from '../rank/worth.ts'
import { maxPassages } from '../text/passages.ts'
import { maxYears } from '../text/times.ts'
import type { Statements } from '../../store/sql/statements.ts'

export interface PassageRow {
  key: number
  thread: number
  words: number
  form: number
  role: number
  createdAt: number
}

const columns = 'key, thread, words, form, role, created_at AS createdAt'

/** The counts of terms in at least `frequentFrom` passages are cached, at most `maxFrequent` of them. */
const frequentFrom = 2_000
const maxFrequent = 2_000

/** At an index of a list, `removed` items were removed and `added` inserted. */
interface Splice {
  at: number
  removed: number
  added: number
}

export interface Move {
  from: number
  to: number
  length: number
}

/** The passages of a changed message. `first`: the key of the first passage, if there are any. */
export interface ChangedPassages {
  first: number
  rows: PassageRow[]
}

/** The passages that are read at once. */
const readAtOnce = 20_000

/** The next passages of a resource, each column as a list in JSON: a row for each passage would take four times as long. */
export interface PassageBlock {
  keys: string | null
  threads: string | null
  lengths: string | null
  forms: string | null
  roles: string | null
  times: string | null
}

export function readPassages(index: Statements, resource: number, after: number): PassageBlock | undefined {
  return index.one<PassageBlock>(
    `SELECT json_group_array(key) AS keys, json_group_array(thread) AS threads, json_group_array(words) AS lengths,
       json_group_array(form) AS forms, json_group_array(role) AS roles, json_group_array(created_at) AS times
     FROM (SELECT key, thread, words, form, role, created_at FROM passages WHERE resource = ? AND key > ? ORDER BY key LIMIT ?) AS next`,
    resource, after, readAtOnce,
  )
}

/** The passages of changed messages. */
export function readChanged(index: Statements, resource: number, firsts: readonly number[]): ChangedPassages[] {
  const text = `SELECT ${columns} FROM passages WHERE key >= ? AND key < ? AND resource = ? ORDER BY key`
  return firsts.map((first) => ({ first, rows: index.all<PassageRow>(text, first, first + maxPassages, resource) }))
}

/** The passages of one resource in memory, in the order of their keys. */
export class ResourceCollection implements Collection {
  readonly resource: number
  count = 0
  threads = 0
  keys = new Float64Array(0)
  length = new Uint16Array(0)
  thread = new Int32Array(0)
  previous = new Int32Array(0)
  next = new Int32Array(0)
  form = new Uint8Array(0)
  /** The number of its role in `roles`. */
  role = new Uint8Array(0)
  createdAt = new Float64Array(0)
  /** The database key of each thread, by its number in this collection. */
  threadKeys: number[] = []
  #threadNumbers = new Map<number, number>()
  /** The last passage of each thread, by the thread's number. */
  #last: number[] = []
  #lengths: Float64Array | undefined
  #sessions: ReturnType<typeof sessionsOf> | undefined
  #worth: Worth | undefined
  readonly #frequent = new Map<string, number>()
  #counted: ReadonlyMap<string, number> = new Map()
  /** The number of passages when the cached counts were taken. */
  #frequentAtCount = 0

  constructor(resource: number) {
    this.resource = resource
  }

  static read(index: Statements, resource: number): ResourceCollection {
    const collection = new ResourceCollection(resource)
    for (let after: number | undefined = -1; after !== undefined;) after = collection.add(readPassages(index, resource, after))
    return collection
  }

  /** Adds passages that `readPassages` returned. Returns after which one the next are read; undefined when all are. */
  add(block: PassageBlock | undefined): number | undefined {
    const [keys = [], threads = [], lengths = [], forms = [], roles = [], times = []] = [
      block?.keys, block?.threads, block?.lengths, block?.forms, block?.roles, block?.times,
    ].map((list) => JSON.parse(list ?? '[]') as number[])
    const isLast = keys.length < readAtOnce
    this.#reserve(this.count + keys.length, isLast)
    this.keys.set(keys, this.count)
    this.length.set(lengths, this.count)
    this.form.set(forms, this.count)
    this.role.set(roles, this.count)
    this.createdAt.set(times, this.count)
    let [thread, number] = [-1, -1]
    for (const of of threads) {
      // Passages of a thread mostly follow each other.
      if (of !== thread) [thread, number] = [of, this.#addThread(of)]
      this.thread[this.count] = number
      this.#linkLast(this.count, number)
      this.count += 1
    }
    return isLast ? undefined : keys.at(-1)
  }

  // Sessions, their lengths and the worth of passages are computed once for all searches, until the collection changes.

  get lengths(): Float64Array {
    this.#lengths ??= lengthsOf(this)
    return this.#lengths
  }

  get worth(): Worth {
    this.#worth ??= worthOfAll(this)
    return this.#worth
  }

  get session(): Int32Array {
    return this.#sessionsOf().session
  }

  get sessions(): number {
    return this.#sessionsOf().sessions
  }

  /** The years in which its messages were written, the latest first. */
  years(): number[] {
    let oldest = Number.POSITIVE_INFINITY
    let newest = Number.NEGATIVE_INFINITY
    for (let at = 0; at < this.count; at += 1) {
      const time = this.createdAt[at] as number
      if (time < oldest) oldest = time
      if (time > newest) newest = time
    }
    if (this.count === 0) return []
    const last = new Date(newest).getUTCFullYear()
    return Array.from({ length: Math.min(maxYears, last - new Date(oldest).getUTCFullYear() + 1) }, (_, n) => last - n)
  }

  #sessionsOf(): ReturnType<typeof sessionsOf> {
    this.#sessions ??= sessionsOf(this)
    return this.#sessions
  }

  /**
   * The number of passages that contain each token. Counting takes as long as reading the postings, so the counts of frequent tokens are
   * cached and may be up to 3 % old.
   */
  termCounts(tokens: readonly string[], count: (unknown: readonly string[]) => number[]): number[] {
    if (Math.abs(this.count - this.#frequentAtCount) > this.count / 32) {
      this.#frequent.clear()
      this.#frequentAtCount = this.count
    }
    const unknown = tokens.filter((token) => !this.#frequent.has(token))
    const counted = new Map(count(unknown).map((found, at) => [unknown[at] ?? '', found]))
    this.#counted = counted
    return tokens.map((token) => counted.get(token) ?? this.#frequent.get(token) ?? 0)
  }

  /** Caches what was counted last. Called after a search, which may run several times until all its answers are known. */
  keepCounts(): void {
    for (const [token, found] of this.#counted) {
      if (found >= frequentFrom && this.#frequent.size < maxFrequent) this.#frequent.set(token, found)
    }
    this.#counted = new Map()
  }

  /** Of all lists, and of what is computed from them: the session and the worth of each passage. */
  get bytes(): number {
    return this.keys.byteLength * 5
  }

  /** Takes the passages of changed messages, in the order of their keys. Returns how the remaining passages moved. */
  refresh(messages: readonly ChangedPassages[]): Move[] {
    this.#lengths = undefined
    this.#sessions = undefined
    this.#worth = undefined
    const changes = messages.map(({ first, rows }) => {
      const at = this.#lowerBound(first)
      return { at, removed: this.#lowerBound(first + maxPassages) - at, rows }
    })
    const isUnmoved = ({ at, removed, rows }: (typeof changes)[number]) => removed === rows.length
      && rows.every(({ key, thread }, n) => this.keys[at + n] === key && this.threadKeys[this.thread[at + n] ?? -1] === thread)
    const moved = changes.filter((change) => !isUnmoved(change))
    for (const { at, rows } of changes.filter(isUnmoved)) for (const [n, row] of rows.entries()) this.#set(at + n, row)
    if (moved.every(({ at }) => at === this.count)) {
      this.#reserve(this.count + moved.reduce((sum, { rows }) => sum + rows.length, 0))
      for (const { rows } of moved) for (const row of rows) this.#append(row)
      return []
    }
    const splices = moved.map(({ at, removed, rows }): Splice => ({ at, removed, added: rows.length }))
    const moves = movesAfter(splices, this.count)
    this.#reserve(this.count + splices.reduce((sum, { added }) => sum + added, 0))
    for (const list of [this.keys, this.length, this.thread, this.form, this.role, this.createdAt]) applyMoves(list, moves)
    let shift = 0
    for (const { at, removed, rows } of moved) {
      for (const [n, row] of rows.entries()) this.#set(at + shift + n, row)
      shift += rows.length - removed
    }
    this.count += shift
    this.#relink()
    return moves
  }

  /** The number of a passage; -1 when the collection does not contain it. */
  find(key: number): number {
    const at = this.#lowerBound(key)
    return at < this.count && this.keys[at] === key ? at : -1
  }

  /** The numbers of a message's passages, given the key of its first one: `from` inclusive, `to` exclusive. */
  rangeOf(first: number): [from: number, to: number] {
    return [this.#lowerBound(first), this.#lowerBound(first + maxPassages)]
  }

  /** The numbers of passages, given their keys in order; unknown keys are left out. */
  findAll(keys: readonly number[]): Int32Array {
    const found = new Int32Array(keys.length)
    let size = 0
    let low = 0
    for (const key of keys) {
      low = this.#searchFrom(low, key)
      if (this.keys[low] === key && low < this.count) found[size++] = low
    }
    return found.subarray(0, size)
  }

  /** The same, with -1 for unknown keys. */
  findEach(keys: readonly number[]): Int32Array {
    const found = new Int32Array(keys.length)
    let low = 0
    for (let n = 0; n < keys.length; n += 1) {
      low = this.#searchFrom(low, keys[n] as number)
      found[n] = this.keys[low] === keys[n] && low < this.count ? low : -1
    }
    return found
  }

  /** The place of a key that is not before `from`. Steps double, then a binary search: the next key is often a neighbor. */
  #searchFrom(from: number, key: number): number {
    const { count } = this
    let low = from
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
    return low
  }

  threadNumber(key: number): number | undefined {
    return this.#threadNumbers.get(key)
  }

  /** The number of the first passage with this key or a later one. */
  #lowerBound(key: number): number {
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
    this.#set(at, row)
    this.#linkLast(at, this.thread[at] ?? 0)
    this.count += 1
  }

  #set(at: number, { key, thread, words, form, role, createdAt }: PassageRow): void {
    this.keys[at] = key
    this.length[at] = words
    this.thread[at] = this.#addThread(thread)
    this.form[at] = form
    this.role[at] = role
    this.createdAt[at] = createdAt
  }

  #addThread(thread: number): number {
    let number = this.#threadNumbers.get(thread)
    if (number === undefined) {
      number = this.threadKeys.push(thread) - 1
      this.#threadNumbers.set(thread, number)
      this.threads = this.threadKeys.length
    }
    return number
  }

  /** Links all passages with their neighbors again, and numbers the threads that still have passages. */
  #relink(): void {
    const before = this.threadKeys
    const renumbered = new Int32Array(before.length).fill(-1)
    this.threadKeys = []
    this.#threadNumbers = new Map()
    this.threads = 0
    this.#last = []
    for (let at = 0; at < this.count; at += 1) {
      const old = this.thread[at] ?? 0
      if (renumbered[old] === -1) renumbered[old] = this.#addThread(before[old] ?? 0)
      this.thread[at] = renumbered[old] ?? 0
      this.#linkLast(at, this.thread[at] ?? 0)
    }
  }

  #linkLast(at: number, of: number): void {
    const before = this.#last[of] ?? -1
    this.previous[at] = before
    this.next[at] = -1
    if (before >= 0) this.next[before] = at
    this.#last[of] = at
  }

  /** `isWhole`: no more are read, so that little more room is needed. */
  #reserve(count: number, isWhole = false): void {
    const size = Math.max(64, Math.ceil(count * (isWhole ? 1.02 : 1.25)))
    if (isWhole ? size === this.keys.length : count <= this.keys.length) return
    this.keys = grow(this.keys, new Float64Array(size))
    this.length = grow(this.length, new Uint16Array(size))
    this.thread = grow(this.thread, new Int32Array(size))
    this.previous = grow(this.previous, new Int32Array(size))
    this.next = grow(this.next, new Int32Array(size))
    this.form = grow(this.form, new Uint8Array(size))
    this.role = grow(this.role, new Uint8Array(size))
    this.createdAt = grow(this.createdAt, new Float64Array(size))
  }
}

/** Copies the numbers into another array, as many as have room. */
export function grow<Numbers extends Float64Array | Float32Array | Uint16Array | Int32Array | Uint8Array | Int8Array>(
  before: Numbers,
  after: Numbers,
): Numbers {
  after.set(before.length > after.length ? before.subarray(0, after.length) : before)
  return after
}

/** How the remaining items move, in an order in which no item is overwritten before it moved. `splices` are in ascending order. */
export function movesAfter(splices: readonly Splice[], count: number): Move[] {
  const kept: Move[] = []
  let from = 0
  let shift = 0
  for (const { at, removed, added } of [...splices, { at: count, removed: 0, added: 0 }]) {
    if (at > from) kept.push({ from, to: from + shift, length: at - from })
    from = at + removed
    shift += added - removed
  }
  return [...kept.filter(({ to, from: was }) => to < was), ...kept.filter(({ to, from: was }) => to > was).toReversed()]
}

/** Moves items in a list that is long enough, `stride` numbers per item. */
export function applyMoves(
  list: Float64Array | Float32Array | Int32Array | Uint16Array | Uint8Array | Int8Array,
  moves: readonly Move[],
  stride = 1,
): void {
  for (const { from, to, length } of moves) list.copyWithin(to * stride, from * stride, (from + length) * stride)
}
