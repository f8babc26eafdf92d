import { lexer, type Token } from 'marked'

/** A longer text takes too long to parse with each of its chunks. */
const maxLength = 50_000

/** More quotes and lists in each other than a text for readers has: the parser calls itself for each, and takes longer for each. */
const deep = /^[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+){12}|^[ \t]{40,}(?:[-*+>]|\d{1,9}[.)])/m

/** In one block. The parser looks for the counterpart of each mark in the rest of its block. */
const maxMarks = 1_000
const marks = /[*_~`[\]]/g

/**
 * The tokens of a text, or undefined where it can't be parsed in a moment: then it is shown as it is. A text that anyone wrote must not
 * keep the page busy, nor end it.
 */
export function tokensOf(text: string): Token[] | undefined {
  if (text.length > maxLength || deep.test(text) || hasManyMarks(text)) return undefined
  try {
    return lexer(text)
  } catch {
    return undefined
  }
}

function hasManyMarks(text: string): boolean {
  return text.split(/\n[ \t]*\n/).some((block) => (block.match(marks)?.length ?? 0) > maxMarks)
}
