import { stem } from './stem.ts'

/** English words that say nothing about what a text is about. Other languages have theirs weighed down by being everywhere. */
const empty = new Set(
  ('a an the of to in on at for and or but is are was were be been being do does did has have had i you he she it we they me him her us them my your his ' +
  'its our their this that these those with as by from about into over after before what which who whom whose when where why how not no so if than then ' +
  'there here will would can could should may might just also very really some any all').split(' '),
)

const runs = /[\p{L}\p{N}\p{M}]+/gu
/** Scripts that put no spaces between words. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const english = /^[a-z]+$/
/** Longer ones are no words: encoded data, mostly. They are kept by their beginning, so that an id that is pasted is still found. */
const longest = 40

/**
 * The words of a text as they are looked for: small letters, without accents, English ones without their endings. Texts without spaces
 * are taken by pairs of characters.
 */
export function wordsOf(text: string): string[] {
  const words: string[] = []
  for (const [run] of plain(text).matchAll(runs)) {
    if (unspaced.test(run)) words.push(...pairs(run))
    else if (!english.test(run)) words.push(run.slice(0, longest))
    else if (!empty.has(run)) words.push(stem(run.slice(0, longest)))
  }
  return words
}

function plain(text: string): string {
  // Letters of other scripts have marks that are part of the word.
  return text.toLowerCase().normalize('NFKD').replace(/[\u0300-\u036f]/g, '')
}

function pairs(run: string): string[] {
  const characters = Array.from(run)
  if (characters.length < 2) return characters
  return characters.slice(1).map((character, index) => `${characters[index]}${character}`)
}
