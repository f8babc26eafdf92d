import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractTerms } from '../text/terms.ts'
import { formOf } from '../text/form.ts'
import { linkNeighbors, type Collection, type Posting } from './bm25.ts'
import { quantize, quantizedNumbers, quantizedScale } from './quantized-vectors.ts'
import { rank } from './rank.ts'

function made(texts: ReadonlyArray<{ text: string; thread: number }>): { collection: Collection; ask: (question: string) => Posting[] } {
  const terms = texts.map(({ text }) => extractTerms(text))
  const thread = texts.map((one) => one.thread)
  return {
    collection: {
      count: texts.length,
      length: terms.map(({ length }) => length),
      thread,
      ...linkNeighbors(thread),
      form: texts.map(({ text }) => formOf(text)),
    },
    ask: (question) =>
      [...new Set(extractTerms(question))].flatMap((term) => {
        const passages = terms.flatMap((own, at) => (own.includes(term) ? [at] : []))
        return passages.length === 0 ? [] : { term, passages }
      }),
  }
}

describe('ranking', () => {
  it('ranks the matching question first and the answer after it second', () => {
    const { collection, ask } = made([
      { text: 'Where did you adopt the parrot?', thread: 0 },
      { text: 'At the shelter in Leeds.', thread: 0 },
      { text: 'Nothing of the kind.', thread: 1 },
    ])
    const ranked = rank(collection, ask('adopt parrot'), undefined, { limit: 3 })
    expect(ranked.map(({ at }) => at)).toEqual([0, 1])
    expect(ranked[1]?.reasons.previous).toBeGreaterThan(0)
    expect(ranked.every(({ score }) => score >= 0 && score <= 1)).toBe(true)
  })

  it('finds by vectors what shares no term', () => {
    const { collection, ask } = made([{ text: 'A hound.', thread: 0 }, { text: 'A loaf.', thread: 1 }])
    expect(rank(collection, ask('puppy'), Float32Array.of(0.8, 0.1), { limit: 1 })).toMatchObject([{ at: 0, reasons: { words: 0, meaning: 1 } }])
    expect(rank(collection, ask('puppy'), undefined, { limit: 1 })).toEqual([])
  })

  it('counts the meaning of the passage before, also where only one of the two has a vector', () => {
    const { collection, ask } = made([{ text: 'A hound.', thread: 0 }, { text: 'Yes.', thread: 0 }, { text: 'Well.', thread: 0 }, { text: 'No.', thread: 1 }])
    const ranked = rank(collection, ask('puppy'), Float32Array.of(0.8, 0.2, 0, 0.2), { limit: 4 })
    const pairs = ranked.toSorted((a, b) => a.at - b.at).map(({ reasons }) => reasons.meaningOfPair)
    expect(pairs).toEqual([1, expect.closeTo(0.625), 0, expect.closeTo(0.25)])
  })

  it('returns at most the limit, best first, each once, and only allowed passages', () => {
    const some = fc.array(fc.record({ text: fc.lorem({ maxCount: 6 }), thread: fc.nat(3) }), { minLength: 1, maxLength: 40 })
    fc.assert(fc.property(some, fc.lorem({ maxCount: 4 }), fc.integer({ min: 1, max: 8 }), (texts, question, limit) => {
      const { collection, ask } = made(texts.toSorted((a, b) => a.thread - b.thread))
      const ranked = rank(collection, ask(question), undefined, { limit, allowed: (at) => at % 2 === 0 })
      expect(ranked.length).toBeLessThanOrEqual(limit)
      expect(new Set(ranked.map(({ at }) => at)).size).toBe(ranked.length)
      expect(ranked.every(({ at }) => at % 2 === 0)).toBe(true)
      expect(ranked.map(({ score }) => score)).toEqual(ranked.map(({ score }) => score).toSorted((a, b) => b - a))
    }))
  })
})

describe('quantized vectors', () => {
  it('keep their direction in bytes', () => {
    fc.assert(fc.property(fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 64, maxLength: 64 }), (vector) => {
      const bytes = quantize(vector)
      const length = Math.hypot(...vector) || 1
      const back = Array.from(quantizedNumbers(bytes), (number) => number * quantizedScale(bytes))
      for (const [at, number] of vector.entries()) expect(back[at]).toBeCloseTo(number / length, 1)
    }))
  })
})
