import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { extractTerms, searchTerms } from '../text/terms.ts'
import { formOf } from '../text/form.ts'
import { bestFirst, highest } from './best-first.ts'
import { linkNeighbors, type Collection, type Posting } from './bm25.ts'
import { quantize, quantizedNumbers, quantizedScale } from './quantized-vectors.ts'
import { rank } from './rank.ts'
import { sessionsOf } from './sessions.ts'
import { readTimes } from '../text/times.ts'

function made(texts: ReadonlyArray<{ text: string; thread: number; at?: number }>): { collection: Collection; ask: (question: string) => Posting[] } {
  const terms = texts.map(({ text }) => extractTerms(text))
  const links = linkNeighbors(texts.map(({ thread }) => thread))
  const createdAt = texts.map(({ at = 0 }) => at)
  return {
    collection: {
      count: texts.length,
      length: terms.map(({ length }) => length),
      ...links,
      ...sessionsOf({ count: texts.length, previous: links.previous, createdAt }),
      createdAt,
      form: texts.map(({ text }) => formOf(text)),
    },
    ask: (question) =>
      searchTerms(question).flatMap(({ term, forms }) => {
        const passages = terms.flatMap((own, at) => (forms.some((form) => own.includes(form)) ? [at] : []))
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

describe('the best of many', () => {
  it('come in order, each once, however many are read', () => {
    fc.assert(fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 1_500 }), (values) => {
      const candidates = Int32Array.from(values.keys()).filter((at) => at % 3 !== 0)
      const sorted = Array.from(candidates).toSorted((a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b)
      expect([...bestFirst(candidates, Float64Array.from(values))]).toEqual(sorted)
    }), { numRuns: 50 })
  })

  it('the highest values are those of a sort', () => {
    fc.assert(fc.property(fc.array(fc.integer({ min: -20, max: 20 }), { maxLength: 300 }), fc.integer({ min: 1, max: 40 }), (tens, size) => {
      const values = Float32Array.from(tens, (ten) => ten / 20)
      const found = Array.from(highest(values, size), (at) => values[at] ?? 9)
      expect(found.toSorted((a, b) => b - a)).toEqual(Array.from(values).toSorted((a, b) => b - a).slice(0, size))
    }))
  })
})

describe('time', () => {
  const at = (date: string) => Date.parse(`${date}T09:00:00Z`)
  const { collection, ask } = made([
    { text: 'The printer broke.', thread: 0, at: at('2031-01-10') },
    { text: 'The scanner broke.', thread: 1, at: at('2031-04-04') },
    { text: 'The printer has to be ready by 3 March.', thread: 2, at: at('2031-01-02') },
  ])
  const found = (question: string) => {
    const times = readTimes(question, at('2031-06-01'), () => [2031])
    return rank(collection, ask(question), undefined, { limit: 3, times }).map((one) => [one.at, one.reasons.time])
  }

  it('[K1.25] a message that was written soon after a time that the question names comes before one with the same words', () => {
    expect(found('What broke?').map(([number]) => number).slice(0, 2)).toEqual([0, 1])
    expect(found('What broke on April 3, 2031?')[0]).toEqual([1, expect.closeTo(0.97, 1)])
  })

  it('[K1.25] so does one that mentions the time, whenever it was written', () => {
    expect(found('What has to be ready by 3 March?')[0]).toEqual([2, 1])
  })
})

describe('sessions', () => {
  it('[K1.27] are parts of a thread without a long pause, of a limited length', () => {
    const hour = 3_600_000
    const createdAt = [0, 1, 2, 20, 21, 20.5, 3].map((time) => time * hour)
    const previous = [-1, 0, 1, 2, 3, -1, 5]
    expect(sessionsOf({ count: 7, previous, createdAt })).toEqual({ session: Int32Array.from([0, 0, 0, 1, 1, 2, 3]), sessions: 4 })
    const many = Array.from({ length: 60 }, (_, at) => at - 1)
    const { session } = sessionsOf({ count: 60, previous: many, createdAt: many })
    expect(Array.from(new Set(session), (one) => session.filter((other) => other === one).length)).toEqual([24, 24, 12])
  })

  it('[K1.27] raise the messages beside others that match, in one long thread', () => {
    const day = 86_400_000
    const { collection, ask } = made([
      { text: 'The sauna is warm.', thread: 0, at: 0 },
      { text: 'Nothing to report from here today.', thread: 0, at: 1 },
      { text: 'We booked the cabin at the lake with the others.', thread: 0, at: day },
      { text: 'The lake is cold.', thread: 0, at: day + 1 },
      { text: 'The sauna is lovely there.', thread: 0, at: day + 2 },
    ])
    expect(rank(collection, ask('sauna at the cabin by the lake'), undefined, { limit: 5 }).map(({ at }) => at).slice(0, 3).toSorted()).toEqual([2, 3, 4])
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
