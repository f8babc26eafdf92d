import type { RegexRule } from './regex-filter.ts'

/** A place in a text where a rule matches. */
export interface Match {
  start: number
  end: number
  rule: RegexRule
}

/** What may be said of a text, and the rules that matched in it. */
export interface Scanned {
  text: string
  found: string[]
}

/** A match that is longer than this is only found in a text that is whole. */
export const MAX_HELD = 8192
/** How much of what was shown is looked at again: patterns may ask what stands before a match. */
const contextLength = 64

/** Finds what rules match. Rules that match the same place count once, the first of them. */
export class TextScanner {
  readonly #rules: ReadonlyArray<{ rule: RegexRule; pattern: RegExp; opening: RegExp | undefined }>

  constructor(rules: readonly RegexRule[]) {
    this.#rules = rules.map((rule) => ({ rule, pattern: searching(rule.pattern, 'g'), opening: rule.opening && searching(rule.opening, '') }))
  }

  /** In order, and none overlaps another. None begins before `from`. */
  find(text: string, from = 0): Match[] {
    const matches = this.#rules.flatMap(({ rule, pattern }) => matchesOf(text, rule, pattern, from))
    matches.sort((a, b) => a.start - b.start)
    const found: Match[] = []
    for (const match of matches) {
      const last = found.at(-1)
      if (last && match.start < last.end) last.end = Math.max(last.end, match.end)
      else found.push({ ...match })
    }
    return found
  }

  redact(text: string): Scanned {
    return redacted(text, this.find(text))
  }

  /** From where on a text may become a match when it goes on. `holdBack` is for rules that don't say how they begin. */
  openFrom(text: string, holdBack: number): number {
    let from = text.length
    for (const { opening } of this.#rules) from = Math.min(from, opening ? (opening.exec(text)?.index ?? from) : text.length - holdBack)
    return Math.max(0, from)
  }
}

/** A copy of our own: with `g` or `y`, an expression remembers where it was. */
function searching({ source, flags }: RegExp, flag: string): RegExp {
  return new RegExp(source, flags.replace(/[gy]/g, '') + flag)
}

function matchesOf(text: string, rule: RegexRule, pattern: RegExp, from: number): Match[] {
  const matches: Match[] = []
  pattern.lastIndex = from
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    const length = rule.measure ? rule.measure(found[0]) : found[0].length
    if (length > 0) matches.push({ start: found.index, end: found.index + length, rule })
    pattern.lastIndex = found.index + Math.max(1, length)
  }
  return matches
}

function redacted(text: string, matches: readonly Match[]): Scanned {
  if (matches.length === 0) return { text, found: [] }
  let made = ''
  let end = 0
  for (const match of matches) {
    made += text.slice(end, match.start) + replacementOf(match.rule)
    end = match.end
  }
  return { text: made + text.slice(end), found: [...new Set(matches.map(({ rule }) => rule.name))] }
}

function replacementOf({ name, replacement }: RegexRule): string {
  return replacement ?? `[${name.toUpperCase()}]`
}

/**
 * A text that comes in pieces. What may be a match, or become one, is held back until that is settled: at most `MAX_HELD` characters,
 * and none longer than the text goes on.
 */
export class StreamedText {
  readonly #scanner: TextScanner
  readonly #holdBack: number
  #shown = ''
  /** Where in it a match may begin: what was replaced is no part of another, and what is at the very start of a context that was cut off may be the rest of anything. */
  #from = 0
  #held = ''

  constructor(scanner: TextScanner, holdBack: number) {
    this.#scanner = scanner
    this.#holdBack = holdBack
  }

  /** Takes the next piece and gives what may be shown now. */
  take(piece: string): Scanned {
    this.#held += piece
    const matches = this.#find()
    let end = this.#scanner.openFrom(this.#shown + this.#held, this.#holdBack) - this.#shown.length
    // A match at the end may become longer; one that isn't shown whole is not shown.
    for (const match of matches.toReversed()) if (match.end > end || match.end === this.#held.length) end = Math.min(end, match.start)
    if (this.#held.length - end > MAX_HELD) {
      const least = this.#held.length - MAX_HELD
      end = matches.find((match) => match.start < least && match.end > least)?.end ?? least
    }
    return this.#show(Math.max(0, end), matches)
  }

  /** Gives what is left. */
  end(): Scanned {
    return this.#show(this.#held.length, this.#find())
  }

  #find(): Match[] {
    const offset = this.#shown.length
    return this.#scanner.find(this.#shown + this.#held, this.#from)
      .flatMap(({ start, end, rule }) => (end <= offset ? [] : [{ start: Math.max(0, start - offset), end: end - offset, rule }]))
  }

  #show(end: number, matches: readonly Match[]): Scanned {
    const piece = this.#held.slice(0, end)
    const shown = matches.filter((match) => match.end <= end)
    const last = shown.at(-1)
    const from = last ? this.#shown.length + last.end : this.#from
    const all = this.#shown + piece
    this.#shown = all.slice(-contextLength)
    const cut = all.length - this.#shown.length
    this.#from = cut > 0 ? Math.max(1, from - cut) : from
    this.#held = this.#held.slice(end)
    return redacted(piece, shown)
  }
}
