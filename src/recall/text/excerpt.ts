import { extractTerms } from './terms.ts'

const ellipsis = '…'
/** The characters of context before the first matching term. */
const leadIn = 60

/** The part of a text, at most `maxLength` long, that contains the most of these terms; without any, its beginning. `…` marks each cut. */
export function excerpt(text: string, terms: ReadonlySet<string>, maxLength: number): string {
  const whole = text.trim()
  if (whole.length <= maxLength) return whole
  const room = Math.max(1, maxLength - 2 * ellipsis.length)
  const from = Math.min(windowStart(whole, terms, room), whole.length - room)
  return withEllipses(whole, startBoundary(whole, from), endBoundary(whole, from + room))
}

/** The passage, with `…` where the text continues; the whole text when it does not contain the passage. */
export function quotePassage(text: string, passage: string): string {
  const at = passage === '' ? -1 : text.indexOf(passage)
  if (at < 0) return text.trim()
  const from = at - (text.length - text.trimStart().length)
  return withEllipses(text.trim(), from, from + passage.length)
}

function withEllipses(text: string, from: number, to: number): string {
  return `${from > 0 ? ellipsis : ''}${text.slice(Math.max(0, from), to).trim()}${to < text.length ? ellipsis : ''}`
}

/** The start of the window that contains the most distinct terms. */
function windowStart(text: string, terms: ReadonlySet<string>, room: number): number {
  const matches: Array<{ at: number; end: number; term: string }> = []
  for (const { 0: run, index } of text.matchAll(/\S{1,40}/g)) {
    for (const term of extractTerms(run)) if (terms.has(term)) matches.push({ at: index, end: index + run.length, term })
  }
  const lead = Math.min(leadIn, Math.floor(room / 4))
  const inside = new Map<string, number>()
  let best = { count: 0, at: 0 }
  let first = 0
  for (const { end: last, term } of matches) {
    inside.set(term, (inside.get(term) ?? 0) + 1)
    for (let one = matches[first]; one && last - one.at > room - lead && one.end < last; one = matches[first]) {
      const left = (inside.get(one.term) ?? 1) - 1
      if (left === 0) inside.delete(one.term)
      else inside.set(one.term, left)
      first += 1
    }
    if (inside.size > best.count) best = { count: inside.size, at: matches[first]?.at ?? 0 }
  }
  return Math.max(0, best.at - lead)
}

/** Not within a word where possible, and never between the two halves of a surrogate pair. */
function startBoundary(text: string, from: number): number {
  if (from <= 0) return 0
  const space = text.slice(from, from + leadIn / 2).search(/\s/)
  if (space >= 0) return from + space + 1
  return isLowSurrogate(text, from) ? from + 1 : from
}

function endBoundary(text: string, to: number): number {
  if (to >= text.length) return text.length
  const space = text.slice(to - leadIn / 2, to + 1).search(/\s\S*$/)
  if (space > 0 && to > leadIn) return to - leadIn / 2 + space
  return isLowSurrogate(text, to) ? to - 1 : to
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  return unit >= 0xdc00 && unit <= 0xdfff
}
