import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { neighbours, type Collection, type Posting } from './collection.ts'
import { excerptOf, passageIn } from '../text/excerpt.ts'
import { compileFilter } from '../filter/filter.ts'
import { isQuestion, passagesOf } from '../text/passages.ts'
import { numbersOf, quantised, scaleOf } from './quantised.ts'
import { rank } from './rank.ts'
import { wordsOf } from '../text/words.ts'

function made(texts: ReadonlyArray<{ text: string; thread: number }>): { collection: Collection; ask: (question: string) => Posting[] } {
  const words = texts.map(({ text }) => wordsOf(text))
  const thread = texts.map((one) => one.thread)
  return {
    collection: { count: texts.length, length: words.map(({ length }) => length), thread, ...neighbours(thread), question: texts.map(({ text }) => (isQuestion(text) ? 1 : 0)) },
    ask: (question) => [...new Set(wordsOf(question))].flatMap((word) => {
      const passages = words.flatMap((own, at) => (own.includes(word) ? [at] : []))
      return passages.length === 0 ? [] : { word, passages }
    }),
  }
}

describe('ranking', () => {
  it('prefers the answer to the question that led to it, and knows the message after it', () => {
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

  it('lets meaning find what words do not', () => {
    const { collection, ask } = made([{ text: 'A hound.', thread: 0 }, { text: 'A loaf.', thread: 1 }])
    const meanings = { own: Float32Array.of(0.8, 0.1), pair: Float32Array.of(0.8, 0.1) }
    expect(rank(collection, ask('puppy'), meanings, { limit: 1 })).toMatchObject([{ at: 0, reasons: { words: 0, meaning: 1 } }])
    expect(rank(collection, ask('puppy'), undefined, { limit: 1 })).toEqual([])
  })

  it('gives as many as are wanted, best first, each once, and none that is not allowed', () => {
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

describe('texts', () => {
  it('are shown by the part that has the words, never longer than wanted, with a mark where they were cut', () => {
    const rain = 'It rained all day. '.repeat(200)
    fc.assert(fc.property(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 60, max: 600 }), (before, longest) => {
      const text = `${rain.slice(0, before * 19)}The falcon is called Ada. ${rain}`
      const shown = excerptOf(text, new Set(wordsOf('falcon called Ada')), longest)
      expect(shown.length).toBeLessThanOrEqual(longest)
      expect(shown).toContain('falcon is called Ada')
      expect(shown.endsWith('…')).toBe(true)
    }))
    fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.integer({ min: 1, max: 100 }), fc.string(), (text, longest, question) => {
      const shown = excerptOf(text, new Set(wordsOf(question)), longest)
      expect(shown.length).toBeLessThanOrEqual(Math.max(longest, 3))
      expect(shown.isWellFormed()).toBe(true)
      expect(text).toContain(shown.replaceAll(/^…|…$/g, ''))
    }))
    expect(passageIn('  One. Two. Three. ', 'Two.')).toBe('…Two.…')
    expect(passageIn(' One. Two.', 'Two.')).toBe('…Two.')
    expect(passageIn(' One. Two.', 'Three.')).toBe('One. Two.')
    expect(passageIn('One. Two.', '')).toBe('One. Two.')
  })

  it('are cut into passages that lose nothing but space, always the same', () => {
    fc.assert(fc.property(fc.array(fc.lorem({ maxCount: 12, mode: 'sentences' }), { maxLength: 30 }), (sentences) => {
      const text = sentences.join(' ')
      const passages = passagesOf(text)
      expect(passages.join(' ').replaceAll(/\s+/g, ' ')).toBe(text.trim().replaceAll(/\s+/g, ' '))
      expect(passages.every(({ length }) => length <= 1_000)).toBe(true)
      expect(passagesOf(text)).toEqual(passages)
    }))
    expect(passagesOf('x'.repeat(5_000_000)).length).toBeLessThanOrEqual(1_024)
  })

  it('have words in any script', () => {
    expect(wordsOf('Dancing dancers danced!')).toEqual(['danc', 'dancer', 'danc'])
    expect(wordsOf('Café à la crème')).toEqual(wordsOf('cafe a la creme'))
    expect(wordsOf('東京タワー')).toEqual(['東京', '京タ', 'タワ', 'ワー'])
    expect(wordsOf('Привет, мир')).toEqual(['привет', 'мир'])
  })

  it('keep their cosines in bytes', () => {
    fc.assert(fc.property(fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 64, maxLength: 64 }), (vector) => {
      const bytes = quantised(vector)
      const length = Math.hypot(...vector) || 1
      const back = Array.from(numbersOf(bytes), (number) => number * scaleOf(bytes))
      for (const [at, number] of vector.entries()) expect(back[at]).toBeCloseTo(number / length, 1)
    }))
  })
})

describe('filters', () => {
  const metadata = { city: 'Rome', age: 30, tags: ['a', 'b'], inner: { deep: true }, items: [{ n: 1 }, { n: 5 }] }
  it.each([
    [{ city: 'Rome' }, true],
    [{ city: { $ne: 'Rome' } }, false],
    [{ age: { $gt: 18, $lte: 30 } }, true],
    [{ age: { $gte: 31 } }, false],
    [{ age: { $lt: 30 } }, false],
    [{ city: { $in: ['Paris', 'Rome'] } }, true],
    [{ city: { $nin: ['Paris', 'Rome'] } }, false],
    [{ tags: { $all: ['a', 'b'] } }, true],
    [{ tags: { $all: ['a', 'c'] } }, false],
    [{ tags: 'a' }, true],
    [{ tags: { $contains: 'b' } }, true],
    [{ tags: { $size: 3 } }, false],
    [{ items: { $elemMatch: { n: { $gt: 4 } } } }, true],
    [{ items: { $elemMatch: { n: { $gt: 5 } } } }, false],
    [{ 'inner.deep': true }, true],
    [{ none: { $exists: false } }, true],
    [{ city: { $regex: '^Ro' } }, true],
    [{ city: { $not: { $eq: 'Rome' } } }, false],
    [{ $or: [{ city: 'Paris' }, { age: 30 }] }, true],
    [{ $and: [{ city: 'Rome' }, { age: 31 }] }, false],
    [{ $nor: [{ city: 'Paris' }, { age: 31 }] }, true],
    [{ $not: { city: 'Rome' } }, false],
  ])('%j is %s', (filter, expected) => {
    expect(compileFilter(filter)(metadata)).toBe(expected)
  })

  it.each([{ city: { $like: 'R' } }, { $xor: [] }, { city: { $in: 'Rome' } }, { city: { $regex: '(' } }, { age: { $gt: {} } }, [],
    { age: { $gt: 0, b: 2 } }, { tags: { $size: 'a' } }, { tags: { $size: -1 } }, { city: { $exists: 'no' } }, { city: { $elemMatch: { $gt: 1, b: 2 } } }])('refuses %j by name', (filter) => {
    expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('refuses by name what no metadata can be', () => {
    const itself: Record<string, unknown> = {}
    itself.own = itself
    for (const value of [() => 1, Symbol('s'), 1n, /x/, new Map(), [() => 1], { deep: { er: Symbol('s') } }, itself]) {
      for (const filter of [{ a: value }, { a: { $ne: value } }, { a: { $in: [value] } }, { a: { $contains: value } }, { $or: [{ a: value }] }, { a: { $not: { $eq: value } } }]) {
        expect(() => compileFilter(filter)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
      }
    }
  })
})
