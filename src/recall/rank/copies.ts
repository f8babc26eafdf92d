import { formOf, forms } from '../text/form.ts'
import { extractTerms } from '../text/terms.ts'

/** The fields of a message that its copy in a cloned thread shares. */
export interface MessageStamp {
  role: string
  createdAt: number
}

/** A set of messages that recognizes copies: a cloned thread has messages of the same role, time and text as its source. */
export class Copies {
  readonly #texts = new Map<string, Array<() => string>>()

  /** `text` is only called when another message has the same role and time. */
  add(stamp: MessageStamp, text: () => string): void {
    const key = stampKey(stamp)
    const texts = this.#texts.get(key)
    if (texts) texts.push(text)
    else this.#texts.set(key, [text])
  }

  has(stamp: MessageStamp, text: () => string): boolean {
    const texts = this.#texts.get(stampKey(stamp))
    if (!texts) return false
    const own = text()
    return texts.some((other) => other() === own)
  }
}

function stampKey({ role, createdAt }: MessageStamp): string {
  return `${createdAt} ${role}`
}

/** So much of a text is compared. */
const comparedLength = 4_000
/** Questions that share this part of their terms ask the same. */
export const sameQuestion = 0.75

/**
 * Texts that differ in what they say. Statements are the same when they differ in case, punctuation and spaces at most: one other word can
 * turn a fact into its opposite. Questions, requests and answers without content are the same when they share most of their terms.
 */
export class DistinctTexts {
  readonly #statements = new Set<string>()
  readonly #questions: Array<ReadonlySet<string>> = []

  /** Adds a text. False when one that says the same was added before. */
  add(text: string): boolean {
    const compared = text.slice(0, comparedLength)
    const words = wordsOf(compared)
    if (this.#statements.has(words)) return false
    this.#statements.add(words)
    if (formOf(compared) === forms.statement) return true
    const terms = new Set(extractTerms(compared))
    if (this.#questions.some((other) => shareOfBoth(terms, other) >= sameQuestion)) return false
    if (terms.size > 0) this.#questions.push(terms)
    return true
  }
}

/** The words of a text, without case, punctuation and spaces. */
export function wordsOf(text: string): string {
  return (text.toLowerCase().normalize('NFKC').match(/[\p{L}\p{N}\p{M}]+/gu) ?? [text.trim()]).join(' ')
}

/** The terms that both have, as a share of those that either has. */
function shareOfBoth(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let both = 0
  for (const term of a) if (b.has(term)) both += 1
  return both / (a.size + b.size - both || 1)
}
