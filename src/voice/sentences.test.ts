import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SentenceCutter, type Sentence } from './sentences.ts'

function cut(pieces: readonly string[]): Sentence[] {
  const cutter = new SentenceCutter()
  return [...pieces.flatMap((piece) => cutter.push(piece)), ...cutter.end()]
}

const spoken = (text: string) => cut([text]).flatMap((sentence) => (sentence.spoken === '' ? [] : sentence.spoken))

describe('sentences', () => {
  it('end at a point, a mark or a line, and not within numbers, abbreviations and initials', () => {
    expect(spoken('It costs 3.50 today. Ask Dr. Smith, e.g. now! J. Doe agrees? "Yes." Good\nnext line')).toEqual([
      'It costs 3.50 today.', 'Ask Dr. Smith, e.g. now!', 'J. Doe agrees?', '"Yes."', 'Good', 'next line',
    ])
    expect(spoken('これは本です。はい！')).toEqual(['これは本です。', 'はい！'])
  })

  it('[Z2.2] leave out code, addresses and the marks of Markdown', () => {
    const text = '# Title\n- **Run** `npm test`, see [the page](https://example.com/a_b).\n```js\nconst x = 1. \n```\nDone: https://example.com/x\n---\n'
    expect(spoken(text)).toEqual(['Title', 'Run npm test, see the page.', 'Done:'])
  })

  it('are complete as soon as the space after them is there', () => {
    const cutter = new SentenceCutter()
    expect(cutter.push('One is here.')).toEqual([])
    expect(cutter.push(' ')).toEqual([{ start: 0, end: 12, spoken: 'One is here.' }])
  })

  it('are cut where they have no end', () => {
    const sentences = cut(['word '.repeat(300)])
    expect(sentences.every(({ start, end }) => end - start <= 400)).toBe(true)
    expect(sentences.map((sentence) => sentence.spoken).join(' ')).toBe('word '.repeat(300).trim())
  })

  it('[Z2.2] cover the text without gaps, in the same places for any pieces in which it comes', () => {
    const part = fc.constantFrom('Hi. ', 'a', 'b. ', '.', '! ', '\n', '```', '```js\n', ' ', 'Dr. ', '1. ', '。', '"', '😀', 'word '.repeat(90), '*x* ')
    const text = fc.array(part, { maxLength: 40 }).map((parts) => parts.join(''))
    fc.assert(fc.property(text, fc.array(fc.nat(), { maxLength: 10 }), (whole, cuts) => {
      const places = [...new Set(cuts.map((at) => at % (whole.length + 1)))].toSorted((a, b) => a - b)
      const pieces = [0, ...places].map((from, index) => whole.slice(from, places[index] ?? whole.length))
      const sentences = cut([whole])
      expect(cut(pieces)).toEqual(sentences)
      expect(sentences.map(({ start, end }) => whole.slice(start, end)).join('')).toBe(whole)
      expect(sentences.every(({ start }, index) => start === (sentences[index - 1]?.end ?? 0))).toBe(true)
    }))
  })
})
