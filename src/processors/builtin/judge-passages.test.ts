import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { replacePassages } from './judge.ts'

const named = (...texts: string[]) => texts.map((text, index) => ({ text, replacement: `[${index}]` }))

describe('[G2.32] replaced passages', () => {
  it.each([
    ['that overlap are one', 'Ask John Smith Street 5 now', ['John Smith', 'Smith Street 5'], 'Ask [0] now'],
    ['whichever was named first', 'Ask John Smith Street 5 now', ['Smith Street 5', 'John Smith'], 'Ask [1] now'],
    ['that are parts of another go with it', 'Ann Lee is Ann', ['Ann', 'Ann Lee'], '[1] is [0]'],
    ['that overlap themselves', 'banana', ['ana'], 'b[0]'],
    ['side by side stay two', 'AnnLee', ['Ann', 'Lee'], '[0][1]'],
    ['that are found nowhere change nothing', 'as it was', ['x'], 'as it was'],
  ])('%s', (_, text, passages, made) => {
    expect(replacePassages(text, named(...passages))).toBe(made)
  })

  it('are not searched for in replacements', () => {
    expect(replacePassages('Call A at 5', [{ text: '5', replacement: '[NAME]' }, { text: 'A', replacement: '[NAME]' }])).toBe('Call [NAME] at [NAME]')
  })

  it('are removed, and everything else stays', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 30 })
    fc.assert(fc.property(letters, fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 5 }), { maxLength: 4 }), (text, passages) => {
      const covered = new Set(passages.flatMap((passage) => Array.from(text, (_, at) => (text.startsWith(passage, at) ? Array.from(passage, (__, more) => at + more) : [])).flat()))
      const made = replacePassages(text, passages.map((passage) => ({ text: passage, replacement: '#' })))
      expect(made.replaceAll('#', '')).toBe(Array.from(text).filter((_, at) => !covered.has(at)).join(''))
    }))
  })
})
