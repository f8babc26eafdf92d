import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { maxPassages } from '../text/passages.ts'
import { confidence, rank } from '../rank/rank.ts'
import { ResourceCollection } from './resource-collection.ts'
import { besideMessages } from './databases.ts'
import { indexToken } from './indexer.ts'
import { limits, readPostings } from './searcher.ts'

const resource = 1
const termsOf = (...words: string[]) => words.map((term) => ({ term, forms: [term] }))

/** Messages of one passage each, in threads of a hundred. */
function indexOf(texts: ReadonlyArray<readonly string[]>) {
  const { index, words: terms, write } = besideMessages(new DatabaseSync(':memory:'))
  write(() => {
    index.run('INSERT INTO resources (key, id) VALUES (?, ?)', resource, 'r')
    for (const [at, words] of texts.entries()) {
      const key = (at + 1) * maxPassages
      index.run(
        'INSERT INTO passages (key, resource, thread, words, form, role, created_at, hash) VALUES (?, ?, ?, ?, 0, 0, ?, ?)',
        key,
        resource,
        Math.floor(at / 100),
        words.length,
        at,
        '',
      )
      terms.add(key, words.map((word) => indexToken(resource, word)))
    }
  })
  return { words: terms, collection: ResourceCollection.read(index, resource) }
}

describe('terms of a question', () => {
  const vocabulary = ['ash', 'birch', 'cedar', 'dogwood', 'elm']
  const few = { terms: 4, rarePostings: 6, commonPostings: 4, scanned: 25, withAllTerms: 1_000, enough: 3 }

  it('[K1.16] have postings in every passage with all of them, in none without them, and a true count, however low the limits', () => {
    fc.assert(fc.property(
      fc.array(fc.subarray(vocabulary), { minLength: 1, maxLength: 40 }), fc.subarray(vocabulary, { minLength: 1 }),
      (texts, asked) => {
        const { words, collection } = indexOf(texts)
        const withTerm = (term: string) => texts.flatMap((text, at) => (text.includes(term) ? [at] : []))
        const postings = readPostings(words, collection, termsOf(...asked), few)
        const known = asked.filter((term) => withTerm(term).length > 0)
        expect(postings).toHaveLength(Math.min(known.length, few.terms))
        const whole = texts.flatMap((text, at) => (known.every((term) => text.includes(term)) ? [at] : []))
        for (const { term, passages, count } of postings) {
          const found = Array.from(passages)
          expect(new Set(found).size).toBe(found.length)
          expect(found.filter((at) => !texts[at]?.includes(term))).toEqual([])
          if (known.length > 1 && known.length <= few.terms) expect(whole.filter((at) => !found.includes(at))).toEqual([])
          expect(count ?? found.length).toBe(withTerm(term).length)
        }
      },
    ))
  })

  it('[K1.16] when none is rare: a passage with all of them ranks before one with a single term', () => {
    const count = 2 * limits.rarePostings + 2_000
    const texts = Array.from({ length: count }, (_, at) => [at % 2 === 0 ? 'budget' : 'meeting', `note${at}`])
    const last = count - 500
    texts[last] = ['budget', 'meeting']
    const { words, collection } = indexOf(texts)
    const postings = readPostings(words, collection, termsOf('budget', 'meeting'))
    const best = rank(collection, postings, undefined, { limit: 3 })
    expect(best[0]).toMatchObject({ at: last, reasons: { words: 1 } })
    expect(best[1]?.reasons.words).toBeLessThan(0.6)
    expect(confidence(collection, 2, postings, best, undefined)).toBeGreaterThan(0.1)
  })

  it('[K1.16] when none is rare and no passage has all: a passage with the two rarest is found', () => {
    const count = 3 * limits.rarePostings + 6_000
    const texts = Array.from({ length: count }, (_, at) => [['budget', 'meeting', 'friday'][at % 3] ?? '', `note${at}`])
    texts[1] = ['friday']
    texts[4] = ['friday']
    texts[7] = ['friday']
    const last = count - 500
    texts[last] = ['budget', 'meeting']
    const { words, collection } = indexOf(texts)
    const [best] = rank(collection, readPostings(words, collection, termsOf('friday', 'budget', 'meeting')), undefined, { limit: 1 })
    expect(best).toMatchObject({ at: last, reasons: { words: 1 } })
  })

  it('[K1.16] that are common count in passages with a rare one', () => {
    const count = limits.rarePostings + 4_000
    const texts = Array.from({ length: count }, (_, at) => [
      'budget',
      ...(at % 3 === 0 ? ['meeting'] : []),
      ...(at % 50 === 7 ? ['harbour'] : []),
    ])
    const last = count - 600 - ((count - 600) % 150) + 57
    const { words, collection } = indexOf(texts)
    expect(texts[last]).toEqual(['budget', 'meeting', 'harbour'])
    const postings = readPostings(words, collection, termsOf('budget', 'meeting', 'harbour'))
    const [all] = rank(collection, postings, undefined, { limit: 1 })
    expect(texts[all?.at ?? 0]).toEqual(['budget', 'meeting', 'harbour'])
    const common = postings.find(({ term }) => term === 'budget')
    expect(common).toMatchObject({ count })
    expect(Array.from(common?.passages ?? [])).toContain(last)
  })

  it('[K1.26] are found in passages with any of their forms', () => {
    const { words, collection } = indexOf([['went', 'harbour'], ['go', 'harbour'], ['harbour'], ['gone']])
    const postings = readPostings(words, collection, [{ term: 'go', forms: ['go', 'went', 'gone'] }])
    expect(postings.map(({ term, passages }) => [term, Array.from(passages)])).toEqual([['go', [0, 1, 3]]])
  })
})
