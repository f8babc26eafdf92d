/** The used fields of `tokenizer.json`. */
export interface TokenizerFile {
  model: { vocab: Record<string, number>; max_input_chars_per_word?: number }
}

const special = /(\[(?:PAD|UNK|CLS|SEP|MASK)\])/
const spaces = /\s+/u
/** Characters that are a word of their own: punctuation, and the ASCII symbols. */
const punctuation = /([!-/:-@[-`{-~\p{P}])/gu
const ideographs = /([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}])/gu
/** Control characters are removed; tabs and line ends count as spaces. */
const invisible = /[^\S\t\n\r ]|[\u0000\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cn}]/gu

/** Splits texts into the word pieces of a BERT model (uncased): lower case, without accents. */
export class WordPieces {
  readonly #vocabulary: Map<string, number>
  readonly #longest: number
  readonly #unknown: number
  readonly #start: number
  readonly #end: number
  readonly #weights: Float32Array

  constructor({ model: { vocab, max_input_chars_per_word: longest = 100 } }: TokenizerFile) {
    this.#vocabulary = new Map(Object.entries(vocab))
    this.#longest = longest
    const [unknown, start, end] = ['[UNK]', '[CLS]', '[SEP]'].map((piece) => this.#vocabulary.get(piece))
    if (unknown === undefined || start === undefined || end === undefined) throw new Error('the vocabulary has no [UNK], [CLS] and [SEP]')
    this.#unknown = unknown
    this.#start = start
    this.#end = end
    this.#weights = weightsOf(this.#vocabulary)
  }

  /**
   * How much a piece counts in the vector of a text: 0 for punctuation and for the marks at both ends, which say nothing about the topic;
   * less than 1 for the most common words. The vocabulary has its words in the order of their frequency.
   */
  weight(piece: number): number {
    return this.#weights[piece] ?? 0
  }

  /** The ids of the pieces between those of [CLS] and [SEP], at most `most` in all. */
  encode(text: string, most: number): number[] {
    const pieces: number[] = []
    for (const part of text.split(special)) {
      const token = special.test(part) ? this.#vocabulary.get(part) : undefined
      if (token !== undefined) pieces.push(token)
      else for (const word of splitWords(part)) this.#addWord(word, pieces)
      if (pieces.length >= most) break
    }
    return [this.#start, ...pieces.slice(0, most - 2), this.#end]
  }

  /** Adds the longest known pieces, from the start of the word; [UNK] for the whole word when a part is unknown. */
  #addWord(word: string, pieces: number[]): void {
    const letters = Array.from(word)
    if (letters.length > this.#longest) return void pieces.push(this.#unknown)
    const found: number[] = []
    for (let from = 0; from < letters.length;) {
      let to = letters.length
      let piece: number | undefined
      for (; to > from && piece === undefined; to -= 1)
        piece = this.#vocabulary.get(`${from === 0 ? '' : '##'}${letters.slice(from, to).join('')}`)
      if (piece === undefined) return void pieces.push(this.#unknown)
      found.push(piece)
      from = to + 1
    }
    pieces.push(...found)
  }
}

/** A word at this place in the order of frequency counts half. */
const halfWeightPlace = 3

function weightsOf(vocabulary: ReadonlyMap<string, number>): Float32Array {
  const mostCommon = vocabulary.get('the') ?? 0
  const weights = new Float32Array(Math.max(...vocabulary.values()) + 1)
  for (const [piece, id] of vocabulary) {
    if (special.test(piece) || !/[\p{L}\p{N}]/u.test(piece)) continue
    const place = Math.max(1, id - mostCommon + 1)
    weights[id] = place / (place + halfWeightPlace)
  }
  return weights
}

function splitWords(text: string): string[] {
  const clean = text.replace(invisible, (found) => (/\p{Zs}|\p{Zl}|\p{Zp}/u.test(found) ? ' ' : '')).replace(ideographs, ' $1 ')
  const plain = clean.normalize('NFD').replace(/\p{Mn}/gu, '').toLowerCase()
  return plain.replace(punctuation, ' $1 ').split(spaces).filter((word) => word !== '')
}
