import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { confidence } from '../rank/confidence.ts'
import { mostPassages } from '../text/passages.ts'
import { rank } from '../rank/rank.ts'
import { ResourceCollection } from './collection.ts'
import { besideMessages } from './databases.ts'
import { tokenOf } from './indexing.ts'
import { limits, postingsOf } from './postings.ts'

const resource = 1

/** Messages of one passage each, in threads of a hundred. */
function indexOf(texts: ReadonlyArray<readonly string[]>) {
  const { index, write } = besideMessages(new DatabaseSync(':memory:'))
  write(() => {
    index.run('INSERT INTO resources (key, id) VALUES (?, ?)', resource, 'r')
    for (const [at, words] of texts.entries()) {
      const key = (at + 1) * mostPassages
      index.run('INSERT INTO passages (key, resource, thread, words, question, role, created_at, hash) VALUES (?, ?, ?, ?, 0, 0, ?, ?)', key, resource, Math.floor(at / 100), words.length, at, '')
      index.run('INSERT INTO words (rowid, text) VALUES (?, ?)', key, words.map((word) => tokenOf(resource, word)).join(' '))
    }
  })
  return { index, collection: new ResourceCollection(index, resource) }
}

describe('words of a question', () => {
  const vocabulary = ['ash', 'birch', 'cedar', 'dogwood', 'elm']
  const few = { words: 4, places: 6, beside: 4, passed: 25, whole: 1_000, enough: 3 }

  it('[K1.16] are known to be in whatever has all of them, and nowhere where they are not, with their true number, however little is read', () => {
    fc.assert(fc.property(
      fc.array(fc.subarray(vocabulary), { minLength: 1, maxLength: 40 }), fc.subarray(vocabulary, { minLength: 1 }),
      (texts, asked) => {
        const { index, collection } = indexOf(texts)
        const havingWord = (word: string) => texts.flatMap((text, at) => (text.includes(word) ? [at] : []))
        const postings = postingsOf(index, collection, asked, few)
        const known = asked.filter((word) => havingWord(word).length > 0)
        expect(postings).toHaveLength(Math.min(known.length, few.words))
        const whole = texts.flatMap((text, at) => (known.every((word) => text.includes(word)) ? [at] : []))
        for (const { word, passages, count } of postings) {
          const found = Array.from(passages)
          expect(new Set(found).size).toBe(found.length)
          expect(found.filter((at) => !texts[at]?.includes(word))).toEqual([])
          if (known.length > 1 && known.length <= few.words) expect(whole.filter((at) => !found.includes(at))).toEqual([])
          expect(count ?? found.length).toBe(havingWord(word).length)
        }
      },
    ))
  })

  it('[K1.16] where none is rare: what has all of them comes before what has one', () => {
    const count = 2 * limits.places + 2_000
    const texts = Array.from({ length: count }, (_, at) => [at % 2 === 0 ? 'budget' : 'meeting', `note${at}`])
    const last = count - 500
    texts[last] = ['budget', 'meeting']
    const { index, collection } = indexOf(texts)
    const postings = postingsOf(index, collection, ['budget', 'meeting'])
    const best = rank(collection, postings, undefined, { limit: 3 })
    expect(best[0]).toMatchObject({ at: last, reasons: { words: 1 } })
    expect(best[1]?.reasons.words).toBeLessThan(0.6)
    expect(confidence(collection.count, 2, postings, best, undefined)).toBeGreaterThan(0.1)
  })

  it('[K1.16] where none is rare and nothing has all of them: what has the two rarest is found', () => {
    const count = 3 * limits.places + 6_000
    const texts = Array.from({ length: count }, (_, at) => [['budget', 'meeting', 'friday'][at % 3] ?? '', `note${at}`])
    texts[1] = ['friday']
    texts[4] = ['friday']
    texts[7] = ['friday']
    const last = count - 500
    texts[last] = ['budget', 'meeting']
    const { index, collection } = indexOf(texts)
    const [best] = rank(collection, postingsOf(index, collection, ['friday', 'budget', 'meeting']), undefined, { limit: 1 })
    expect(best).toMatchObject({ at: last, reasons: { words: 1 } })
  })

  it('[K1.16] that are common count beside rare ones, wherever those are', () => {
    const count = limits.places + 4_000
    const texts = Array.from({ length: count }, (_, at) => ['budget', ...(at % 3 === 0 ? ['meeting'] : []), ...(at % 50 === 7 ? ['harbour'] : [])])
    const last = count - 600 - ((count - 600) % 150) + 57
    const { index, collection } = indexOf(texts)
    expect(texts[last]).toEqual(['budget', 'meeting', 'harbour'])
    const postings = postingsOf(index, collection, ['budget', 'meeting', 'harbour'])
    const [all] = rank(collection, postings, undefined, { limit: 1 })
    expect(texts[all?.at ?? 0]).toEqual(['budget', 'meeting', 'harbour'])
    const common = postings.find(({ word }) => word === 'budget')
    expect(common).toMatchObject({ count })
    expect(Array.from(common?.passages ?? [])).toContain(last)
  })
})
