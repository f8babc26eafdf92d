import type { Posting } from '../rank/collection.ts'
import type { Statements } from '../../store/sql/statements.ts'
import { indexToken } from './indexer.ts'
import type { ResourceCollection } from './resource-collection.ts'

/** The limits that bound how much of the index one search reads. */
export const limits = {
  /** Terms of the question that are looked up, the rarest first. */
  terms: 64,
  /** Postings of the rare terms, in total. */
  rarePostings: 20_000,
  /** Postings of common terms, read only where a rare term occurs too. */
  commonPostings: 10_000,
  /** Postings that the database may scan to find the latter. */
  scanned: 100_000,
  /** Passages with all terms that are read in any case. */
  withAllTerms: 1_000,
  /** With fewer passages than this, passages with some of the terms are read too. */
  enough: 100,
}

interface KnownTerm {
  term: string
  /** The quoted token, as a query of the full-text index. */
  query: string
  count: number
}

/**
 * The postings of a question's terms, within the limits: all postings of the rarest terms; those of common terms only where a rare one
 * occurs too, and where all terms occur.
 */
export function readPostings(
  index: Statements, collection: ResourceCollection, terms: readonly string[], most: typeof limits = limits,
): Posting[] {
  const read = (match: string, limit: number): Int32Array => {
    // As one JSON string: reading as many rows one by one would cost more than the rest of the search.
    const found = index.one<{ keys: string }>(
      'SELECT json_group_array(rowid) AS keys FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)',
      match,
      limit,
    )
    return collection.findAll(JSON.parse(found?.keys ?? '[]') as number[])
  }
  const known = knownTerms(index, collection, terms).slice(0, most.terms)
  const [rarest] = known
  if (!rarest) return []
  const isCommon = rarest.count > most.rarePostings
  let postingCount = 0
  const rare = known.filter(({ count }, at) => (at === 0 || postingCount + count <= most.rarePostings) && (postingCount += count) > 0)
  const postings: Posting[] = isCommon
    ? [{ term: rarest.term, passages: read(rarest.query, most.commonPostings), count: rarest.count }]
    : rare.map(({ term, query }) => ({ term, passages: read(query, most.rarePostings) })).filter(({ passages }) => passages.length > 0)
  const anyRare = rare.map(({ query }) => query).join(' OR ')
  let scanned = 0
  let left = most.commonPostings
  for (const { term, query, count } of known.slice(rare.length)) {
    scanned += count + postingCount
    if (scanned > most.scanned) left = 0
    const passages = left > 0 ? read(`${query} AND (${anyRare})`, left) : new Int32Array(0)
    left -= passages.length
    postings.push({ term, passages, count })
  }
  if (!isCommon && left > 0) return postings
  // Passages with all terms; while those are too few and no term is rare, also passages with the rarer half of the terms.
  let found = 0
  for (let width = known.length; width > 1 && found < most.enough; width = isCommon ? Math.ceil(width / 2) : 1) {
    const together = known.slice(0, width)
    const whole = read(together.map(({ query }) => query).join(' AND '), most.withAllTerms)
    found = whole.length
    addPassages(postings, new Set(together.map(({ term }) => term)), whole)
  }
  return postings
}

/** The terms that occur in the collection, the rarest first. */
function knownTerms(index: Statements, collection: ResourceCollection, terms: readonly string[]): KnownTerm[] {
  return terms.flatMap((term): KnownTerm | [] => {
    const token = indexToken(collection.resource, term)
    const count = collection.termCount(token, () => index.one<{ doc: number }>('SELECT doc FROM counts WHERE term = ?', token)?.doc ?? 0)
    return count === 0 ? [] : { term, query: `"${token}"`, count }
  }).toSorted((a, b) => a.count - b.count)
}

/** Adds passages that contain all of these terms to the incomplete postings of each. */
function addPassages(postings: readonly Posting[], terms: ReadonlySet<string>, whole: Int32Array): void {
  const isWhole = new Set(whole)
  for (const posting of postings) {
    if (posting.count === undefined || !terms.has(posting.term)) continue
    const others = Int32Array.from(posting.passages).filter((at) => !isWhole.has(at))
    const passages = new Int32Array(others.length + whole.length)
    passages.set(others)
    passages.set(whole, others.length)
    posting.passages = passages
  }
}
