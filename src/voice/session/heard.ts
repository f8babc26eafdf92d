import type { Sentence } from '../sentences.ts'

/** A piece of a text that was given to the player. */
export interface PlayedItem extends Sentence {
  /** While its sound is being made, an estimate that is longer than what was given. */
  durationMs: number
  /** How much of it was played. */
  heardMs: number
}

/** A voice says so many characters a second, about. */
const charactersPerSecond = 15

/** How long an item lasts while only so much of its sound is there. */
export function estimatedMs({ start, end }: Sentence, knownMs: number): number {
  return Math.max(((end - start) * 1_000) / charactersPerSecond, knownMs + 1)
}

/**
 * How many characters of a text the user heard: all up to the last item of which something was played, and of that item the words
 * up to the moment, with the word that was spoken then. Items before it count as heard, whatever was reported of them. What is not
 * spoken, such as code, counts as heard with the item before it.
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
