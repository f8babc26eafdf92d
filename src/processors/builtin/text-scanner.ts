/** A pattern, and what replaces its matches. */
export interface RegexRule {
  /** The name of a match in reasons and logs, and in its placeholder `[NAME]`. */
  name: string
  /**
   * Runs on untrusted text, so it has to take linear time: `(a+)+$` on thirty characters can block the process. A lookbehind sees at most
   * 64 characters before a match.
   */
  pattern: RegExp
  /** The replacement of a match. Defaults to the name, in capitals and brackets. Not empty. */
  replacement?: string
  /** The length of the match that counts, 0 for no match: for checksums. */
  measure?(match: string): number
  /**
   * Matches the end of a text that may become a match (it ends in `$`). With it, a stream is held back only where a match may have begun;
   * without it, always by `holdBack` characters.
   */
  opening?: RegExp
}

/** The range of a text that a rule matches. */
interface Match {
  start: number
  end: number
  rule: RegexRule
}

/** A redacted text, and the names of the rules that matched. */
export interface Scanned {
  text: string
  found: string[]
}

/** A longer match is only found in a complete text. */
export const MAX_HELD = 8192
/** How much of the released text is scanned again, for lookbehinds. */
const contextLength = 64

/** Finds the matches of rules. Where matches overlap, the rule of the first counts. */
export class TextScanner {
  readonly #rules: ReadonlyArray<{ rule: RegexRule; pattern: RegExp; opening: RegExp | undefined }>

  constructor(rules: readonly RegexRule[]) {
    this.#rules = rules.map((rule) => ({
      rule, pattern: copyPattern(rule.pattern, 'g'), opening: rule.opening && copyPattern(rule.opening, ''),
    }))
  }

  /** The matches from `from` on, in order and without overlaps. */
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

  /** The index from which a text may become a match when it continues. `holdBack` applies to rules without an `opening`. */
  openFrom(text: string, holdBack: number): number {
    let from = text.length
    for (const { opening } of this.#rules) {
      from = Math.min(from, opening ? (opening.exec(text)?.index ?? from) : text.length - holdBack)
    }
    return Math.max(0, from)
  }
}

/** A private copy: with `g` or `y`, an expression has the state `lastIndex`. */
function copyPattern({ source, flags }: RegExp, flag: string): RegExp {
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
  let result = ''
  let end = 0
  for (const match of matches) {
    result += text.slice(end, match.start) + replacementOf(match.rule)
    end = match.end
  }
  return { text: result + text.slice(end), found: [...new Set(matches.map(({ rule }) => rule.name))] }
}

function replacementOf({ name, replacement }: RegexRule): string {
  return replacement ?? `[${name.toUpperCase()}]`
}

/**
 * A text that arrives in pieces. A possible match is held back until it is certain: at most `MAX_HELD` characters, and at most until the
 * end of the text.
 */
export class StreamedText {
  readonly #scanner: TextScanner
  readonly #holdBack: number
  /** The end of the released text. */
  #context = ''
  /**
   * The first index of the context where a match may begin: after the last replacement, and not at the very start of a truncated context,
   * whose first character may continue anything.
   */
  #from = 0
  #held = ''

  constructor(scanner: TextScanner, holdBack: number) {
    this.#scanner = scanner
    this.#holdBack = holdBack
  }

  /** Adds the next piece, and returns the text that is certain now. */
  add(piece: string): Scanned {
    this.#held += piece
    const matches = this.#find()
    let end = this.#scanner.openFrom(this.#context + this.#held, this.#holdBack) - this.#context.length
    // A match at the end may become longer; no part of a match is released alone.
    for (const match of matches.toReversed()) if (match.end > end || match.end === this.#held.length) end = Math.min(end, match.start)
    if (this.#held.length - end > MAX_HELD) {
      const least = this.#held.length - MAX_HELD
      end = matches.find((match) => match.start < least && match.end > least)?.end ?? least
    }
    return this.#release(Math.max(0, end), matches)
  }

  /** Returns the rest. */
  end(): Scanned {
    return this.#release(this.#held.length, this.#find())
  }

  #find(): Match[] {
    const offset = this.#context.length
    return this.#scanner.find(this.#context + this.#held, this.#from)
      .flatMap(({ start, end, rule }) => (end <= offset ? [] : [{ start: Math.max(0, start - offset), end: end - offset, rule }]))
  }

  #release(end: number, matches: readonly Match[]): Scanned {
    const piece = this.#held.slice(0, end)
    const released = matches.filter((match) => match.end <= end)
    const last = released.at(-1)
    const from = last ? this.#context.length + last.end : this.#from
    const all = this.#context + piece
    this.#context = all.slice(-contextLength)
    const cut = all.length - this.#context.length
    this.#from = cut > 0 ? Math.max(1, from - cut) : from
    this.#held = this.#held.slice(end)
    return redacted(piece, released)
  }
}
