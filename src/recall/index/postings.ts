import type { Posting } from '../rank/collection.ts'
import type { Statements } from '../../store/sql/statements.ts'
import type { ResourceCollection } from './collection.ts'
import { tokenOf } from './indexing.ts'

/** What a search reads of words at most. */
export const limits = {
  /** So many words of a question are looked for, the rarest. */
  words: 64,
  /** So many places of words, wherever they are; and so many more of common ones, beside those. */
  places: 20_000,
  beside: 10_000,
  /** So many places are passed over for the latter. */
  passed: 100_000,
  /** Of passages that have all words, so many in any case; where there are fewer than enough, of those that have several. */
  whole: 1_000,
  enough: 100,
}

interface Known {
  word: string
  term: string
  count: number
}

/**
 * Where the words of a question are, as far as reading that takes no time: the rarest wherever they are; the common ones where a rare one
 * is too, and where all of them are.
 */
export function postingsOf(index: Statements, collection: ResourceCollection, words: readonly string[], most: typeof limits = limits): Posting[] {
  const read = (match: string, limit: number): Int32Array => {
    // As one text: so many rows by themselves would cost more than all the rest.
    const found = index.one<{ keys: string }>('SELECT json_group_array(rowid) AS keys FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)', match, limit)
    return collection.findAll(JSON.parse(found?.keys ?? '[]') as number[])
  }
  const known = knownOf(index, collection, words).slice(0, most.words)
  const [rarest] = known
  if (!rarest) return []
  const isCommon = rarest.count > most.places
  let places = 0
  const rare = known.filter(({ count }, at) => (at === 0 || places + count <= most.places) && (places += count) > 0)
  const postings: Posting[] = isCommon
    ? [{ word: rarest.word, passages: read(rarest.term, most.beside), count: rarest.count }]
    : rare.map(({ word, term }) => ({ word, passages: read(term, most.places) })).filter(({ passages }) => passages.length > 0)
  const anyRare = rare.map(({ term }) => term).join(' OR ')
  let passed = 0
  let left = most.beside
  for (const { word, term, count } of known.slice(rare.length)) {
    passed += count + places
    if (passed > most.passed) left = 0
    const passages = left > 0 ? read(`${term} AND (${anyRare})`, left) : new Int32Array(0)
    left -= passages.length
    postings.push({ word, passages, count })
  }
  if (!isCommon && left > 0) return postings
  // Where all of them are; where those are few and no word is rare, also where the rarer half of them is.
  let found = 0
  for (let width = known.length; width > 1 && found < most.enough; width = isCommon ? Math.ceil(width / 2) : 1) {
    const together = known.slice(0, width)
    const whole = read(together.map(({ term }) => term).join(' AND '), most.whole)
    found = whole.length
    addWhole(postings, new Set(together.map(({ word }) => word)), whole)
  }
  return postings
}

/** Those that are anywhere, the rarest first. */
function knownOf(index: Statements, collection: ResourceCollection, words: readonly string[]): Known[] {
  return words.flatMap((word): Known | [] => {
    const token = tokenOf(collection.resource, word)
    const count = collection.counted(token, () => index.one<{ doc: number }>('SELECT doc FROM counts WHERE term = ?', token)?.doc ?? 0)
    return count === 0 ? [] : { word, term: `"${token}"`, count }
  }).toSorted((a, b) => a.count - b.count)
}

/** Adds passages that have all of these words to those where a word is known to be. */
function addWhole(postings: readonly Posting[], words: ReadonlySet<string>, whole: Int32Array): void {
  const isWhole = new Set(whole)
  for (const posting of postings) {
    if (posting.count === undefined || !words.has(posting.word)) continue
    const others = Int32Array.from(posting.passages).filter((at) => !isWhole.has(at))
    const passages = new Int32Array(others.length + whole.length)
    passages.set(others)
    passages.set(whole, others.length)
    posting.passages = passages
  }
}
