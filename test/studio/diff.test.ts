import { describe, expect, it } from 'vitest'
import { lineDiff, wordDiff, type Piece } from '../../studio/parts/diff.ts'

const side = (pieces: readonly Piece[], other: Piece['kind'], joint: string) => pieces.filter(({ kind }) => kind !== other).map(({ text }) => text).join(joint)
const short = (pieces: readonly Piece[]) => pieces.map(({ kind, text }) => `${{ same: ' ', removed: '-', added: '+' }[kind]}${text}`)

describe('what differs between two texts', () => {
  it('[Y3.7] is shown by lines, and within a line by words', () => {
    expect(short(lineDiff('Answer.\nBe kind.\nEnd.', 'Answer.\nBe short.\nSay why.\nEnd.'))).toEqual([' Answer.', '-Be kind.', '+Be short.', '+Say why.', ' End.'])
    expect(short(wordDiff('Answer in two sentences.', 'Answer in one sentence.'))).toEqual([' Answer in ', '-two', '+one', '  ', '-sentences', '+sentence', ' .'])
    expect(short(lineDiff('same', 'same'))).toEqual([' same'])
    expect(short(lineDiff('', 'new'))).toEqual(['-', '+new'])
  })

  it('[Y3.7] has all of both texts, whatever they are', () => {
    let seed = 7
    const random = (below: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % below
    for (let round = 0; round < 300; round++) {
      const text = () => Array.from({ length: random(14) }, () => 'abc'[random(3)]).join('\n')
      const [before, after] = [text(), text()]
      const pieces = lineDiff(before, after)
      expect([side(pieces, 'added', '\n'), side(pieces, 'removed', '\n')]).toEqual([before, after])
      const words = wordDiff(before, after)
      expect([side(words, 'added', ''), side(words, 'removed', '')]).toEqual([before, after])
    }
  })

  it('[Y3.7] of very long texts is shown as a whole, at once', () => {
    const long = (word: string) => Array.from({ length: 30_000 }, (_, index) => `${word}${index}`).join('\n')
    const begun = performance.now()
    const pieces = lineDiff(`first\n${long('a')}\nlast`, `first\n${long('b')}\nlast`)
    expect(performance.now() - begun).toBeLessThan(2_000)
    expect([pieces.length, pieces[0]?.kind, pieces.at(-1)?.kind]).toEqual([60_002, 'same', 'same'])
  })
})
