import { HeedError } from '../base/errors.ts'

/**
 * The regular expressions that a result schema may use, read into a tree.
 *
 * A pattern decides which text of an outside sender reaches the parent thread, so that the language is closed: what this file does not read
 * is refused by the name of the construct. Everything that could let a sentence, markup or an escape sequence through is left out (`.`,
 * negated classes, `\s`, quotes, angle brackets), as is everything that needs backtracking (look-around, backreferences).
 */
export type PatternNode =
  /** One character of a set. `fixed` for a literal: its author chose it, not the sender of a message. */
  | { readonly kind: 'character'; readonly set: readonly string[]; readonly fixed: boolean; readonly at: number }
  | { readonly kind: 'sequence'; readonly items: readonly PatternNode[] }
  | { readonly kind: 'choice'; readonly options: readonly PatternNode[] }
  /** `max` may be Infinity. */
  | { readonly kind: 'repeat'; readonly item: PatternNode; readonly min: number; readonly max: number }

/** Longer patterns are refused before they are read. */
const MAX_PATTERN_LENGTH = 1024
const MAX_DEPTH = 16
const MAX_REPEAT = 1000

const DIGITS = range('0', '9')
const WORD = [...DIGITS, ...range('A', 'Z'), '_', ...range('a', 'z')]
/** Not as a value either: they begin markup, end a quotation, or make an escape sequence of what follows. */
const FORBIDDEN = '<>&"\'`\\'

/** Reads a pattern. `field` names it in errors. */
export function parsePattern(source: string, field = 'pattern'): PatternNode {
  return new PatternReader(source, field).read()
}

/** The error for a pattern that is refused. */
export function refusedPattern(field: string, construct: string, wanted: string, at?: number): HeedError {
  const where = at === undefined ? '' : ` at character ${at + 1}`
  return new HeedError('invalid_argument', `${field} has ${construct}${where}: ${wanted}.`, {
    details: { field, construct, ...(at === undefined ? {} : { at }) },
  })
}

class PatternReader {
  readonly #source: string
  readonly #field: string
  #at = 0
  #end: number

  constructor(source: string, field: string) {
    this.#source = source
    this.#field = field
    this.#end = source.length - 1
  }

  read(): PatternNode {
    const source = this.#source
    if (source.length > MAX_PATTERN_LENGTH) throw this.#refusal('more characters than allowed', `write at most ${MAX_PATTERN_LENGTH}`)
    const odd = /[^\x20-\x7e]/.exec(source)
    if (odd) throw this.#refusal('a character outside of printable ASCII', 'write an enum of the texts that you expect', odd.index)
    if (!source.startsWith('^')) throw this.#refusal('no ^ at its start', 'a text around the match would pass too; begin it with ^')
    const escapes = /\\*$/.exec(source.slice(0, -1))?.[0].length ?? 0
    if (source.length < 2 || !source.endsWith('$') || escapes % 2 === 1) {
      throw this.#refusal('no $ at its end', 'a text around the match would pass too; end it with $')
    }
    this.#at = 1
    const node = this.#choice(0)
    if (this.#at < this.#end) throw this.#refusal('an unmatched )', 'remove it, or escape it as \\)', this.#at)
    this.#checkSpaces(node, false)
    return node
  }

  #choice(depth: number): PatternNode {
    if (depth > MAX_DEPTH) throw this.#refusal('too many nested groups', `nest at most ${MAX_DEPTH}`, this.#at)
    const options = [this.#sequence(depth)]
    while (this.#peek() === '|') {
      // `^a|.*$` reads like a whole match and is none: the anchors belong to one alternative each.
      if (depth === 0) throw this.#refusal('an alternation outside of a group', 'put it into a group: ^(a|b)$', this.#at)
      this.#at++
      options.push(this.#sequence(depth))
    }
    return joined(options)
  }

  #sequence(depth: number): PatternNode {
    const items: PatternNode[] = []
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek()) {
      const at = this.#at
      const item = this.#item(next, depth)
      items.push(this.#quantified(item, at))
    }
    const [only] = items
    return items.length === 1 && only ? only : { kind: 'sequence', items }
  }

  #item(next: string, depth: number): PatternNode {
    const at = this.#at
    if (next === '(') return this.#group(depth)
    if (next === '[') return this.#class()
    if (next === '\\') return { kind: 'character', ...this.#escape(), at }
    const refusal = refusedOutside[next]
    if (refusal) throw this.#refusal(refusal[0], refusal[1], at)
    this.#at++
    return { kind: 'character', set: [this.#allowed(next, at)], fixed: true, at }
  }

  #group(depth: number): PatternNode {
    const at = this.#at
    this.#at++
    if (this.#peek() === '?') {
      const rest = this.#source.slice(at + 2)
      if (/^(?:=|!|<=|<!)/.test(rest)) throw this.#refusal('a look-around', 'write what has to match itself', at)
      if (/^[<P']/.test(rest)) throw this.#refusal('a named group', 'write (…)', at)
      if (rest.startsWith('>')) throw this.#refusal('an atomic group', 'write (…)', at)
      if (!rest.startsWith(':')) throw this.#refusal('flags', 'write the characters that may occur: [Aa]', at)
      this.#at += 2
    }
    const node = this.#choice(depth + 1)
    if (this.#peek() !== ')') throw this.#refusal('a group without an end', 'close it with )', at)
    this.#at++
    return node
  }

  #quantified(item: PatternNode, at: number): PatternNode {
    const quantifier = this.#quantifier()
    if (!quantifier) return item
    if (isEmpty(item)) throw this.#refusal('a quantifier of an empty group', 'remove it', at)
    const next = this.#peek()
    if (next === '?') throw this.#refusal('a lazy quantifier', 'a whole match has no shorter one; remove the ?', this.#at)
    if (next === '+') throw this.#refusal('a possessive quantifier', 'remove the second +', this.#at)
    if (next === '*' || next === '{') throw this.#refusal('a quantifier of a quantifier', 'put the first one into a group', this.#at)
    return { kind: 'repeat', item, ...quantifier }
  }

  #quantifier(): { min: number; max: number } | undefined {
    const next = this.#peek()
    if (next === '?' || next === '*' || next === '+') {
      this.#at++
      return { min: next === '+' ? 1 : 0, max: next === '?' ? 1 : Infinity }
    }
    if (next !== '{') return undefined
    const at = this.#at
    const match = /^\{(\d{1,4})(?:(,)(\d{1,4})?)?\}/.exec(this.#source.slice(at, this.#end))
    if (!match) throw this.#refusal('a { that begins no quantifier', 'write {n}, {n,} or {n,m}, or escape it as \\{', at)
    const [text, least = '', comma, most] = match
    const min = Number(least)
    const max = most === undefined ? (comma ? Infinity : min) : Number(most)
    if (max < min || max === 0) {
      throw this.#refusal('a quantifier that matches nothing', 'write {n,m} with n of at most m, and m above 0', at)
    }
    if (min > MAX_REPEAT || (max > MAX_REPEAT && max !== Infinity)) {
      throw this.#refusal('a quantifier that is too large', `repeat at most ${MAX_REPEAT} times`, at)
    }
    this.#at += text.length
    return { min, max }
  }

  #class(): PatternNode {
    const at = this.#at
    this.#at++
    if (this.#peek() === '^') {
      throw this.#refusal('a negated class', 'it would let every other character through; name those that may occur', at)
    }
    const set = new Set<string>()
    for (let next = this.#peek(); next !== ']'; next = this.#peek()) {
      if (next === undefined) throw this.#refusal('a class without an end', 'close it with ]', at)
      for (const character of this.#classItem(next)) set.add(character)
    }
    this.#at++
    if (set.size === 0) throw this.#refusal('an empty class', 'name the characters that may occur', at)
    return { kind: 'character', set: [...set].toSorted(), fixed: false, at }
  }

  /** A character, a range, `\d` or `\w`. */
  #classItem(next: string): readonly string[] {
    const at = this.#at
    const from = this.#classCharacter(next)
    const isRange = this.#peek() === '-' && this.#source[this.#at + 1] !== ']'
    if (!isRange) return from.map((character) => this.#inClass(character, at))
    this.#at++
    const last = this.#peek()
    const to = last === undefined ? [] : this.#classCharacter(last)
    const [first = '', end = ''] = [from[0], to[0]]
    if (from.length !== 1 || to.length !== 1 || first > end) {
      throw this.#refusal('a range without two characters in order', 'write it as a-z, and a hyphen as \\-', at)
    }
    return range(first, end).map((character) => this.#inClass(character, at))
  }

  #classCharacter(next: string): readonly string[] {
    if (next === '\\') return this.#escape().set
    // POSIX classes and set operations are read differently by different engines, and providers have their own.
    if (next === '[') throw this.#refusal('a [ inside a class', 'escape it as \\[', this.#at)
    this.#at++
    return [next]
  }

  #inClass(character: string, at: number): string {
    if (character === ' ') throw this.#refusal('a blank in a class', 'the sender could write sentences', at)
    return this.#allowed(character, at)
  }

  #allowed(character: string, at: number): string {
    if (!FORBIDDEN.includes(character)) return character
    const name = character === '\\' ? 'a backslash' : `the character ${character}`
    throw this.#refusal(`${name} as a value`, 'the sender could write markup, quotes or escape sequences', at)
  }

  #escape(): { set: readonly string[]; fixed: boolean } {
    const at = this.#at
    const name = this.#source[at + 1] ?? ''
    this.#at += 2
    if (name === 'd') return { set: DIGITS, fixed: false }
    if (name === 'w') return { set: WORD, fixed: false }
    if (name === 'u' || name === 'x') return { set: [this.#coded(name, at)], fixed: true }
    if (this.#at <= this.#end && /[!-/:-@[-`{-~]/.test(name)) return { set: [this.#allowed(name, at)], fixed: true }
    throw this.#refusal(...refusedEscape(name), at)
  }

  #coded(name: string, at: number): string {
    const digits = new RegExp(`^[0-9a-fA-F]{${name === 'u' ? 4 : 2}}`).exec(this.#source.slice(this.#at, this.#end))?.[0]
    const character = digits === undefined ? '' : String.fromCharCode(Number.parseInt(digits, 16))
    if (digits === undefined || !/[\x20-\x7e]/.test(character)) {
      throw this.#refusal('an escape outside of printable ASCII', 'name characters of printable ASCII', at)
    }
    this.#at += digits.length
    return this.#allowed(character, at)
  }

  /**
   * A blank is what makes words a sentence: it may only stand between characters that the author fixed or digits, once each. Inside a
   * repetition, or beside letters that the sender chooses, it is refused.
   */
  #checkSpaces(node: PatternNode, isRepeated: boolean): void {
    if (node.kind === 'choice') for (const option of node.options) this.#checkSpaces(option, isRepeated)
    else if (node.kind === 'repeat') this.#checkSpaces(node.item, isRepeated || node.max > 1)
    else if (node.kind === 'character') this.#checkSpace(node, isRepeated, undefined, undefined)
    else {
      for (const [index, item] of node.items.entries()) {
        if (item.kind === 'character') this.#checkSpace(item, isRepeated, node.items[index - 1], node.items[index + 1])
        else this.#checkSpaces(item, isRepeated)
      }
    }
  }

  #checkSpace(node: PatternNode & { kind: 'character' }, isRepeated: boolean, before?: PatternNode, after?: PatternNode): void {
    if (!node.set.includes(' ')) return
    if (!isRepeated && node.set.length === 1 && isFixedOrDigits(before) && isFixedOrDigits(after)) return
    const wanted = 'put single blanks between literals or digits, outside of repetitions'
    throw this.#refusal('a blank that is not between fixed words', wanted, node.at)
  }

  /** The next character; undefined at the final `$`. */
  #peek(): string | undefined {
    return this.#at < this.#end ? this.#source[this.#at] : undefined
  }

  #refusal(construct: string, wanted: string, at?: number): HeedError {
    return refusedPattern(this.#field, construct, wanted, at)
  }
}

const refusedOutside: Readonly<Record<string, readonly [construct: string, wanted: string] | undefined>> = {
  '.': ['the wildcard .', 'it would let any text through; write a class of the characters that may occur, or \\. for a dot'],
  '^': ['an anchor inside', 'write ^ at the start alone, or \\^'],
  $: ['an anchor inside', 'write $ at the end alone, or \\$'],
  '?': ['a quantifier without an item', 'put it after what it repeats, or escape it'],
  '*': ['a quantifier without an item', 'put it after what it repeats, or escape it'],
  '+': ['a quantifier without an item', 'put it after what it repeats, or escape it'],
  '{': ['a { that begins no quantifier', 'put {n,m} after what it repeats, or escape it as \\{'],
  '}': ['a } without its {', 'escape it as \\}'],
  ']': ['a ] without its [', 'escape it as \\]'],
}

function refusedEscape(name: string): [construct: string, wanted: string] {
  if (/[1-9k]/.test(name)) return ['a backreference', 'write the characters that may occur again']
  if (/[sSDW]/.test(name)) return [`the class \\${name}`, 'it contains blanks or everything else; name the characters that may occur']
  if (/[bB]/.test(name)) return [`the word boundary \\${name}`, 'a whole match needs none; remove it']
  if (/[pP]/.test(name)) return ['a Unicode property', 'name characters of printable ASCII']
  if (/[nrtvf0c]/.test(name)) return [`the control character \\${name}`, 'a result is one line of text']
  if (name === '') return ['an escape without a character', 'escape the backslash']
  return [`the unknown escape \\${name}`, 'write the character without a backslash']
}

/** A choice between single characters is a class, however it is written. */
function joined(options: readonly PatternNode[]): PatternNode {
  const [first] = options
  if (options.length === 1 && first) return first
  const characters = options.flatMap((option) => (option.kind === 'character' ? [option] : []))
  if (characters.length < options.length || !characters[0]) return { kind: 'choice', options }
  const set = [...new Set(characters.flatMap((option) => option.set))].toSorted()
  return { kind: 'character', set, fixed: false, at: characters[0].at }
}

function isEmpty(node: PatternNode): boolean {
  return node.kind === 'sequence' && node.items.every(isEmpty)
}

function isFixedOrDigits(node: PatternNode | undefined): boolean {
  if (node === undefined) return false
  if (node.kind === 'repeat') return node.min > 0 && isDigits(node.item)
  return node.kind === 'character' && ((node.fixed && !node.set.includes(' ')) || isDigits(node))
}

function isDigits(node: PatternNode): boolean {
  return node.kind === 'character' && node.set.every((character) => DIGITS.includes(character))
}

function range(first: string, last: string): string[] {
  const [from, to] = [first.charCodeAt(0), last.charCodeAt(0)]
  return Array.from({ length: to - from + 1 }, (_, index) => String.fromCharCode(from + index))
}
