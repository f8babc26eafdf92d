/** What is said of a vocabulary in `tokenizer.json`. */
export interface TokenizerFile {
  model: { vocab: Record<string, number>; max_input_chars_per_word?: number }
}

const special = /(\[(?:PAD|UNK|CLS|SEP|MASK)\])/
const spaces = /\s+/u
/** Signs that stand alone, also those of ASCII that Unicode counts among symbols. */
const signs = /([!-/:-@[-`{-~\p{P}])/gu
const ideographs = /([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}])/gu
/** Tabs and line ends are spaces; other control characters are nothing. */
const invisible = /[^\S\t\n\r ]|[\u0000\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cn}]/gu

/** Cuts texts into the pieces of words that a BERT model knows, in small letters and without accents. */
export class WordPieces {
  readonly #vocabulary: Map<string, number>
  readonly #longest: number
  readonly #unknown: number
  readonly #start: number
  readonly #end: number

  constructor({ model: { vocab, max_input_chars_per_word: longest = 100 } }: TokenizerFile) {
    this.#vocabulary = new Map(Object.entries(vocab))
    this.#longest = longest
    const [unknown, start, end] = ['[UNK]', '[CLS]', '[SEP]'].map((piece) => this.#vocabulary.get(piece))
    if (unknown === undefined || start === undefined || end === undefined) throw new Error('the vocabulary has no [UNK], [CLS] and [SEP]')
    this.#unknown = unknown
    this.#start = start
    this.#end = end
  }

  /** The numbers of the pieces, with the marks of start and end, and no more than `most` in all. */
  of(text: string, most: number): number[] {
    const pieces: number[] = []
    for (const part of text.split(special)) {
      const mark = special.test(part) ? this.#vocabulary.get(part) : undefined
      if (mark !== undefined) pieces.push(mark)
      else for (const word of wordsIn(part)) this.#addWord(word, pieces)
      if (pieces.length >= most) break
    }
    return [this.#start, ...pieces.slice(0, most - 2), this.#end]
  }

  /** The longest pieces that are known, from its beginning on; one unknown makes all of it unknown. */
  #addWord(word: string, pieces: number[]): void {
    const letters = Array.from(word)
    if (letters.length > this.#longest) return void pieces.push(this.#unknown)
    const found: number[] = []
    for (let from = 0; from < letters.length;) {
      let to = letters.length
      let piece: number | undefined
      for (; to > from && piece === undefined; to -= 1) piece = this.#vocabulary.get(`${from === 0 ? '' : '##'}${letters.slice(from, to).join('')}`)
      if (piece === undefined) return void pieces.push(this.#unknown)
      found.push(piece)
      from = to + 1
    }
    pieces.push(...found)
  }
}

function wordsIn(text: string): string[] {
  const clean = text.replace(invisible, (found) => (/\p{Zs}|\p{Zl}|\p{Zp}/u.test(found) ? ' ' : '')).replace(ideographs, ' $1 ')
  const plain = clean.normalize('NFD').replace(/\p{Mn}/gu, '').toLowerCase()
  return plain.replace(signs, ' $1 ').split(spaces).filter((word) => word !== '')
}
