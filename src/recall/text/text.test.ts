import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { excerpt, quotePassage } from './excerpt.ts'
import { splitPassages } from './passages.ts'
import { extractTerms, searchTerms } from './terms.ts'

describe('the text of a message', () => {
  it('has an excerpt with the terms, at most as long as the limit, with an ellipsis at each cut', () => {
    const rain = 'It rained all day. '.repeat(200)
    fc.assert(fc.property(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 60, max: 600 }), (before, longest) => {
      const text = `${rain.slice(0, before * 19)}The falcon is called Ada. ${rain}`
      const shown = excerpt(text, new Set(extractTerms('falcon called Ada')), longest)
      expect(shown.length).toBeLessThanOrEqual(longest)
      expect(shown).toContain('falcon is called Ada')
      expect(shown.endsWith('…')).toBe(true)
    }))
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.integer({ min: 1, max: 100 }),
        fc.string(),
        (text, longest, question) => {
          const shown = excerpt(text, new Set(extractTerms(question)), longest)
          expect(shown.length).toBeLessThanOrEqual(Math.max(longest, 3))
          expect(shown.isWellFormed()).toBe(true)
          expect(text).toContain(shown.replaceAll(/^…|…$/g, ''))
        },
      ),
    )
    expect(quotePassage('  One. Two. Three. ', 'Two.')).toBe('…Two.…')
    expect(quotePassage(' One. Two.', 'Two.')).toBe('…Two.')
    expect(quotePassage(' One. Two.', 'Three.')).toBe('One. Two.')
    expect(quotePassage('One. Two.', '')).toBe('One. Two.')
  })

  it('is split into passages deterministically, and loses only white space', () => {
    fc.assert(fc.property(fc.array(fc.lorem({ maxCount: 12, mode: 'sentences' }), { maxLength: 30 }), (sentences) => {
      const text = sentences.join(' ')
      const passages = splitPassages(text)
      expect(passages.join(' ').replaceAll(/\s+/g, ' ')).toBe(text.trim().replaceAll(/\s+/g, ' '))
      expect(passages.every(({ length }) => length <= 1_000)).toBe(true)
      expect(splitPassages(text)).toEqual(passages)
    }))
    expect(splitPassages('x'.repeat(5_000_000)).length).toBeLessThanOrEqual(1_024)
  })

  it('has terms in any script', () => {
    expect(extractTerms('Dancing dancers danced!')).toEqual(['danc', 'dancer', 'danc'])
    expect(extractTerms('Café à la crème')).toEqual(extractTerms('cafe a la creme'))
    expect(extractTerms('東京タワー')).toEqual(['東京', '京タ', 'タワ', 'ワー'])
    expect(extractTerms('Привет, мир')).toEqual(['привет', 'мир'])
  })

  it('[K1.26] is searched by the irregular forms of its words, each word once', () => {
    const forms = (text: string) => searchTerms(text).map((one) => one.forms)
    expect(forms('Where did we go?')).toEqual([['go', 'went', 'gone', 'goe']])
    expect(forms('We went, as we had gone before')).toEqual(forms('go'))
    expect(forms('two children')).toEqual([['two', '2'], ['child', 'children']])
    expect(forms('Where do you live?')).toEqual([['live', 'liv']])
    expect(forms('the harbour')).toEqual([['harbour']])
  })
})
