import { parsePattern, refusedPattern, type PatternNode } from './pattern-syntax.ts'

/** A program with more states is refused: a match takes at most this many steps per character. */
export const MAX_STATES = 4096
/** A longer text matches no pattern. Results are far shorter; the limit only bounds the time of a match. */
export const MAX_TEXT = 65_536

/** Steps that counting texts may take before it falls back to a coarser bound. */
const COUNTING_STEPS = 200_000
/** More different letters than the digits of a hexadecimal number have: the sender can spell words with them. */
const SPELLING_LETTERS = 7
const ALPHABET = 26

/**
 * A compiled pattern. It matches whole texts, byte for byte, without normalizing them, in time that grows linearly with the text whatever
 * the pattern is: all states are followed at once, and none is tried again.
 */
export interface Pattern {
  readonly source: string
  readonly states: number
  /** The lengths of the texts that match. `maxLength` may be Infinity. */
  readonly minLength: number
  readonly maxLength: number
  /**
   * How many letters of a matching text the sender may choose, without hexadecimal digits. A choice among a few letters or texts counts as
   * the part of a letter that it is worth. May be Infinity.
   */
  readonly freeLetters: number
  matches(text: string): boolean
  /** An upper bound of the information in a matching text of at most `maxLength` characters, in bits. */
  capacityBits(maxLength: number): number
}

/** Compiles a pattern of the closed subset, or refuses it by the name of the construct. `field` names it in errors. */
export function compilePattern(source: string, field = 'pattern'): Pattern {
  const node = parsePattern(source, field)
  return new Program(source, node, field)
}

/** An automaton without backtracking. A state has a set of characters, or leads to one or two others without reading. */
class Program implements Pattern {
  readonly source: string
  readonly minLength: number
  readonly maxLength: number
  readonly freeLetters: number
  readonly #field: string
  /** For a state that reads: the characters, as a bit per code. Undefined for one that does not. */
  readonly #sets: Array<readonly boolean[] | undefined> = []
  readonly #classes = new Map<readonly string[], readonly boolean[]>()
  readonly #next: number[] = []
  readonly #other: number[] = []
  readonly #start: number
  readonly #accept: number
  /** Marks the states of a set, so that each is in it once. */
  readonly #marks: Uint32Array
  #mark = 0

  constructor(source: string, node: PatternNode, field: string) {
    this.source = source
    this.#field = field
    this.#accept = this.#add(undefined, -1, -1)
    this.#start = this.#build(node, this.#accept)
    this.#marks = new Uint32Array(this.#next.length)
    const { min, max, letters } = extent(node)
    this.minLength = min
    this.maxLength = max
    this.freeLetters = Math.round(letters * 1000) / 1000
  }

  get states(): number {
    return this.#next.length
  }

  matches(text: string): boolean {
    if (text.length > MAX_TEXT) return false
    let current = this.#closure([this.#start])
    for (let index = 0; index < text.length; index++) {
      current = this.#step(current, text.charCodeAt(index))
      if (current.length === 0) return false
    }
    return current.includes(this.#accept)
  }

  capacityBits(maxLength: number): number {
    const longest = Math.min(maxLength, this.maxLength)
    if (longest < this.minLength) return 0
    const exact = this.#countTexts(longest)
    return exact ?? geometricBits(this.#alphabet().length, this.minLength, longest)
  }

  #add(set: readonly boolean[] | undefined, next: number, other: number): number {
    if (this.#next.length >= MAX_STATES) {
      throw refusedPattern(this.#field, `more than ${MAX_STATES} states`, 'repeat less, since repetitions multiply')
    }
    this.#sets.push(set)
    this.#next.push(next)
    this.#other.push(other)
    return this.#next.length - 1
  }

  /** The state in which `node` begins; after it the program continues in state `then`. */
  #build(node: PatternNode, then: number): number {
    if (node.kind === 'character') return this.#add(this.#bits(node.set), then, -1)
    if (node.kind === 'sequence') return node.items.reduceRight((next, item) => this.#build(item, next), then)
    if (node.kind === 'choice') {
      const [first, ...others] = node.options.map((option) => this.#build(option, then))
      return others.reduce((entry, other) => this.#add(undefined, entry, other), first ?? then)
    }
    let entry = then
    if (node.max === Infinity) {
      entry = this.#add(undefined, -1, then)
      this.#next[entry] = this.#build(node.item, entry)
    } else {
      for (let count = node.min; count < node.max; count++) entry = this.#add(undefined, this.#build(node.item, entry), then)
    }
    for (let count = 0; count < node.min; count++) entry = this.#build(node.item, entry)
    return entry
  }

  /** One array per class of the source, also where a repetition made many states of it. */
  #bits(set: readonly string[]): readonly boolean[] {
    const known = this.#classes.get(set)
    if (known) return known
    const all = Array.from({ length: 128 }, () => false)
    for (const character of set) all[character.charCodeAt(0)] = true
    this.#classes.set(set, all)
    return all
  }

  #step(states: readonly number[], code: number): number[] {
    const reached: number[] = []
    for (const state of states) if (this.#sets[state]?.[code]) reached.push(this.#next[state] ?? -1)
    return this.#closure(reached)
  }

  /** The states that are reached without reading. */
  #closure(from: number[]): number[] {
    if (this.#mark === 0xffffffff) {
      this.#marks.fill(0)
      this.#mark = 0
    }
    const mark = ++this.#mark
    const found: number[] = []
    const open = from
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (state < 0 || this.#marks[state] === mark) continue
      this.#marks[state] = mark
      if (this.#sets[state] || state === this.#accept) found.push(state)
      else open.push(this.#next[state] ?? -1, this.#other[state] ?? -1)
    }
    return found
  }

  /** The codes of all characters that occur in matching texts. */
  #alphabet(): number[] {
    const sets = [...this.#classes.values()]
    return Array.from({ length: 128 }, (_, code) => code).filter((code) => sets.some((set) => set[code]))
  }

  /**
   * The number of different texts, in bits: by following sets of states, in which each text has one way. Undefined where there are too many
   * sets.
   */
  #countTexts(longest: number): number | undefined {
    const alphabet = this.#alphabet()
    const ids = new Map<string, number>()
    const sets: number[][] = []
    const idOf = (states: number[]) => {
      const key = states.toSorted((one, other) => one - other).join()
      const known = ids.get(key)
      if (known !== undefined) return known
      ids.set(key, sets.length)
      return sets.push(states) - 1
    }
    idOf(this.#closure([this.#start]))
    const ways: Array<Map<number, number>> = []
    let steps = 0
    for (let id = 0; id < sets.length; id++) {
      const to = new Map<number, number>()
      const states = sets[id] ?? []
      for (const code of alphabet) {
        steps += states.length + 1
        if (steps > COUNTING_STEPS) return undefined
        const reached = this.#step(states, code)
        if (reached.length > 0) to.set(idOf(reached), (to.get(idOf(reached)) ?? 0) + 1)
      }
      ways.push(to)
    }
    return sumOfWays(ways, sets.map((states) => states.includes(this.#accept)), longest)
  }
}

/** The number of ways of at most `longest` steps from the first set to an accepting one, in bits. */
function sumOfWays(ways: ReadonlyArray<ReadonlyMap<number, number>>, accepting: readonly boolean[], longest: number): number {
  let counts = new Map([[0, 1]])
  // Counts grow beyond what a number holds: `shift` is the power of two by which they were divided.
  let shift = 0
  let total = -Infinity
  for (let length = 0; length <= longest && counts.size > 0; length++) {
    let accepted = 0
    let largest = 0
    const next = new Map<number, number>()
    for (const [id, count] of counts) {
      if (accepting[id]) accepted += count
      for (const [to, times] of ways[id] ?? []) {
        const sum = (next.get(to) ?? 0) + count * times
        next.set(to, sum)
        largest = Math.max(largest, sum)
      }
    }
    if (accepted > 0) total = addBits(total, Math.log2(accepted) + shift)
    if (largest > 2 ** 500) {
      shift += 500
      for (const [id, count] of next) next.set(id, count / 2 ** 500)
    }
    counts = next
  }
  return Math.max(0, total)
}

/** The bits of a choice among what has `one` bits and what has `other` bits. */
export function addBits(one: number, other: number): number {
  const [low, high] = one < other ? [one, other] : [other, one]
  return high === -Infinity ? -Infinity : high + Math.log2(1 + 2 ** (low - high))
}

/** The bits of a list of `min` to `max` elements, each one of `choices`. */
function geometricBits(choices: number, min: number, max: number): number {
  return listBits(Math.log2(choices), min, max)
}

/** The bits of a list of `min` to `max` elements of `bits` bits each. */
export function listBits(bits: number, min: number, max: number): number {
  let total = -Infinity
  for (let length = min; length <= max; length++) total = addBits(total, length * bits)
  return Math.max(0, total)
}

function extent(node: PatternNode): { min: number; max: number; letters: number } {
  if (node.kind === 'character') return { min: 1, max: 1, letters: lettersOf(node.set) }
  if (node.kind === 'repeat') {
    const { min, max, letters } = extent(node.item)
    return { min: min * node.min, max: times(max, node.max), letters: times(letters, node.max) }
  }
  const parts = (node.kind === 'sequence' ? node.items : node.options).map(extent)
  if (node.kind === 'sequence') {
    return parts.reduce((sum, part) => ({ min: sum.min + part.min, max: sum.max + part.max, letters: sum.letters + part.letters }), zero)
  }
  return {
    min: Math.min(...parts.map((part) => part.min)),
    max: Math.max(...parts.map((part) => part.max)),
    letters: spells(node) ? choiceLetters(parts.map((part) => part.letters)) : 0,
  }
}

/** The letters of one character of a set: one, or the part of one that the choice among a few is worth. Hexadecimal digits have none. */
function lettersOf(set: readonly string[]): number {
  const letters = new Set(set.join('').toLowerCase().replace(/[^a-z]/g, ''))
  if (letters.size >= SPELLING_LETTERS) return 1
  return [...letters].every(isHexadecimal) ? 0 : Math.log2(letters.size) / Math.log2(ALPHABET)
}

function isHexadecimal(letter: string): boolean {
  return letter >= 'a' && letter <= 'f'
}

/** Whether a matching text may have a letter that is no hexadecimal digit. */
function spells(node: PatternNode): boolean {
  if (node.kind === 'character') return hasSpelling(node.set.join(''))
  if (node.kind === 'repeat') return spells(node.item)
  return (node.kind === 'sequence' ? node.items : node.options).some(spells)
}

/** Whether a text has a letter that is no hexadecimal digit, of any alphabet. */
export function hasSpelling(text: string): boolean {
  return /[g-z]|[^\x20-\x7e]/i.test(text)
}

/** The letters that a choice is worth whose options have so many letters each: as many letters have as many texts. */
export function choiceLetters(options: readonly number[]): number {
  const bits = Math.log2(ALPHABET)
  if (options.includes(Infinity)) return Infinity
  return options.length === 0 ? 0 : Math.max(0, options.map((letters) => letters * bits).reduce(addBits) / bits)
}

const zero = { min: 0, max: 0, letters: 0 }

function times(count: number, factor: number): number {
  return count === 0 ? 0 : count * factor
}
