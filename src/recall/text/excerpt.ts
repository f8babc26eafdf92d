import { wordsOf } from './words.ts'

const cut = '…'
/** So much before the first word that was found, to understand it by. */
const leadIn = 60

/** Of a long text, the part of at most so many characters that has the most of these words; without any, its beginning. `…` stands where it was cut. */
export function excerptOf(text: string, words: ReadonlySet<string>, longest: number): string {
  const whole = text.trim()
  if (whole.length <= longest) return whole
  const room = Math.max(1, longest - 2 * cut.length)
  const from = Math.min(startOf(whole, words, room), whole.length - room)
  return marked(whole, begin(whole, from), end(whole, from + room))
}

/** A passage of a text, with `…` where the text goes on; the whole text where it has no such passage. */
export function passageIn(text: string, passage: string): string {
  const at = passage === '' ? -1 : text.indexOf(passage)
  return at < 0 ? text.trim() : marked(text.trim(), at - (text.length - text.trimStart().length), at - (text.length - text.trimStart().length) + passage.length)
}

function marked(text: string, from: number, to: number): string {
  return `${from > 0 ? cut : ''}${text.slice(Math.max(0, from), to).trim()}${to < text.length ? cut : ''}`
}

/** Where the window begins that has the most different words. */
function startOf(text: string, words: ReadonlySet<string>, room: number): number {
  const found: Array<{ at: number; end: number; word: string }> = []
  for (const { 0: run, index } of text.matchAll(/\S{1,40}/g)) {
    for (const word of wordsOf(run)) if (words.has(word)) found.push({ at: index, end: index + run.length, word })
  }
  const lead = Math.min(leadIn, Math.floor(room / 4))
  const inside = new Map<string, number>()
  let best = { count: 0, at: 0 }
  let first = 0
  for (const { end: last, word } of found) {
    inside.set(word, (inside.get(word) ?? 0) + 1)
    for (let one = found[first]; one && last - one.at > room - lead && one.end < last; one = found[first]) {
      const left = (inside.get(one.word) ?? 1) - 1
      if (left === 0) inside.delete(one.word)
      else inside.set(one.word, left)
      first += 1
    }
    if (inside.size > best.count) best = { count: inside.size, at: found[first]?.at ?? 0 }
  }
  return Math.max(0, best.at - lead)
}

/** Not within a word where that can be helped, and never between the halves of a character. */
function begin(text: string, from: number): number {
  if (from <= 0) return 0
  const space = text.slice(from, from + leadIn / 2).search(/\s/)
  if (space >= 0) return from + space + 1
  return isLow(text, from) ? from + 1 : from
}

function end(text: string, to: number): number {
  if (to >= text.length) return text.length
  const space = text.slice(to - leadIn / 2, to + 1).search(/\s\S*$/)
  if (space > 0 && to > leadIn) return to - leadIn / 2 + space
  return isLow(text, to) ? to - 1 : to
}

function isLow(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff
}
