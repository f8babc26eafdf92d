import type { Posting } from './collection.ts'
import type { Meanings, Ranked } from './rank.ts'

/**
 * How sure it is that anything of this answers the question, between 0 and 1: ranks only say what is better than the rest. It is the
 * share of the question that the best have, with rare words counting more, or their nearness in meaning.
 */
export function confidence(count: number, words: number, postings: readonly Posting[], ranked: readonly Ranked[], meanings: Meanings | undefined): number {
  const unknown = Math.log(1 + count)
  let whole = Math.max(0, words - postings.length) * unknown
  const shares = new Map<number, number>(ranked.slice(0, looked).map(({ at }) => [at, 0]))
  for (const { passages, count: having = passages.length } of postings) {
    const rare = Math.log(1 + count / having)
    whole += rare
    for (let n = 0; n < passages.length; n += 1) {
      const at = passages[n] ?? -1
      const share = shares.get(at)
      if (share !== undefined) shares.set(at, share + rare)
    }
  }
  // Words that are everywhere ask for nothing in particular.
  const told = Math.min(1, whole / unknown)
  let sure = 0
  for (const [at, share] of shares) sure = Math.max(sure, whole > 0 ? (share / whole) * told : 0, meanings?.own[at] ?? 0)
  return Math.min(1, sure)
}

/** The best so many tell. */
export const looked = 10
