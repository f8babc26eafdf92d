/** A piece of a text that is spoken at once. `start` and `end` are its place in the text; the pieces of a text cover it without gaps. */
export interface Sentence {
  start: number
  end: number
  /** The words to speak: the piece without markup, code and addresses. Empty where it has none. */
  spoken: string
}

/** A piece without an end is cut here, at the last space. */
const maxLength = 400

const terminators = new Set(['.', '!', '?', '…'])
/** These end a sentence without a space after them. */
const fullWidth = new Set(['。', '！', '？'])
const closers = new Set(['"', "'", '”', '’', '»', ')', ']', '*', '_'])
/** Words after which a point does not end a sentence. */
const abbreviations = new Set([
  'dr', 'mr', 'mrs', 'ms', 'prof', 'st', 'vs', 'no', 'approx', 'e.g', 'i.e', 'cf', 'fig', 'z.b', 'd.h', 'bzw', 'ca', 'nr', 'usw',
])

/** Cuts a text that streams into sentences. Where it is cut depends on the text alone, and not on the pieces in which it comes. */
export class SentenceCutter {
  #text = ''
  /** The begin of the sentence that is not complete, in the whole text. */
  #start = 0
  #atLineStart = true
  #inCode = false

  /** The length of the text so far. */
  get length(): number {
    return this.#start + this.#text.length
  }

  /** Adds text. Returns the sentences that are complete now. */
  push(delta: string): Sentence[] {
    const complete: Sentence[] = []
    // By code units, so that a pair that is divided between two deltas is read as one that is not.
    for (let i = 0; i < delta.length; i++) {
      const character = delta.charAt(i)
      // A boundary is known when the character after it is: what comes later changes nothing.
      const cut = this.#boundaryBefore(character)
      if (cut > 0) complete.push(this.#take(cut))
      this.#text += character
      if (character === '\n' || fullWidth.has(character)) complete.push(this.#take(this.#text.length))
      else if (this.#text.length >= maxLength) complete.push(this.#take(this.#spaceBefore(maxLength)))
    }
    return complete
  }

  /** The text has ended, or a break follows that no sentence crosses. */
  end(): Sentence[] {
    const rest = this.#text === '' ? [] : [this.#take(this.#text.length)]
    this.#atLineStart = true
    return rest
  }

  /** The length of the sentence that ends before this character; 0 where none ends. */
  #boundaryBefore(character: string): number {
    if (this.#inCode || !/\s/.test(character)) return 0
    let end = this.#text.length
    while (end > 0 && closers.has(this.#text.charAt(end - 1))) end--
    const last = this.#text.charAt(end - 1)
    if (!terminators.has(last)) return 0
    return last === '.' && isAbbreviation(this.#text.slice(0, end - 1)) ? 0 : this.#text.length
  }

  #spaceBefore(limit: number): number {
    const space = this.#text.lastIndexOf(' ', limit - 1)
    return space > 0 ? space + 1 : limit
  }

  #take(length: number): Sentence {
    const piece = this.#text.slice(0, length)
    const start = this.#start
    this.#text = this.#text.slice(length)
    this.#start += length
    const fence = this.#atLineStart && piece.trimStart().startsWith('```')
    const isCode = this.#inCode || fence
    if (fence) this.#inCode = !this.#inCode
    this.#atLineStart = piece.endsWith('\n') || (this.#atLineStart && piece.trim() === '')
    return { start, end: this.#start, spoken: isCode ? '' : withoutMarkup(piece) }
  }
}

function isAbbreviation(before: string): boolean {
  const word = /[\p{L}\p{N}.]*$/u.exec(before)?.[0].toLowerCase() ?? ''
  // A single letter is an initial, and a number at the begin that of an item of a list.
  return abbreviations.has(word) || /^\p{L}$/u.test(word) || /^\s*\d+$/.test(before)
}

/** What a person would read aloud of Markdown. */
function withoutMarkup(text: string): string {
  const plain = text
    .replaceAll(/!?\[([^\]]*)\]\([^)\s]*\)/g, '$1')
    .replaceAll(/https?:\/\/[^\s)]+/g, '')
    .replace(/^\s*(#{1,6}|[-*+>])\s+/, '')
    .replaceAll(/[*_`~|]+/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return /[\p{L}\p{N}]/u.test(plain) ? plain : ''
}
