import type { Sentence } from '../sentences.ts'

/** A sentence that was given to the player. */
export interface PlayedItem extends Sentence {
  durationMs: number
  /** How much of it was played. */
  heardMs: number
}

/**
 * How many characters of a text the user heard: all up to the last sentence of which something was played, and of that sentence the words
 * up to the moment, with the word that was spoken then. Sentences before it count as heard, whatever was reported of them. What is not
 * spoken, such as code, counts as heard with the sentence before it.
 */
export function heardCharacters(text: string, items: readonly PlayedItem[]): number {
  const last = items.findLast(({ heardMs }) => heardMs > 0)
  if (!last) return 0
  if (last.heardMs >= last.durationMs) return items[items.indexOf(last) + 1]?.start ?? text.length
  const piece = text.slice(last.start, last.end)
  const words = [...piece.matchAll(/\S+/g)]
  const count = Math.ceil((words.length * last.heardMs) / last.durationMs)
  const word = words[Math.min(count, words.length) - 1]
  return word ? last.start + word.index + word[0].length : last.end
}
