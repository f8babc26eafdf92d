/** About as much as embedding models of 256 tokens read. */
const longestPassage = 1_000
/** More passages than this a message doesn't have: they grow instead. */
export const mostPassages = 1_024
/** What a passage is joined with of the one before it, to be understood: its end. */
const longestContext = 400

/**
 * A text in passages, each short enough to be about one thing. Cut after sentences where there are any, else between words. The same
 * text has the same passages, always.
 */
export function passagesOf(text: string): string[] {
  const longest = Math.max(longestPassage, Math.ceil((text.length * 2) / mostPassages))
  const passages: string[] = []
  let rest = text.trim()
  while (rest.length > longest) {
    const end = cutOf(rest.slice(0, longest))
    passages.push(rest.slice(0, end).trim())
    rest = rest.slice(end).trim()
  }
  if (rest !== '') passages.push(rest)
  return passages
}

function cutOf(text: string): number {
  const least = text.length / 2
  let best = 0
  for (const match of text.matchAll(/[.!?。！？]["')\]]?\s|\n/g)) best = match.index + match[0].length
  if (best > least) return best
  const space = text.lastIndexOf(' ')
  if (space > least) return space + 1
  // Not between the halves of a character.
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length
}

/** A passage after the one before it, as one text. */
export function withContext(previous: string | undefined, passage: string): string {
  return previous === undefined ? passage : `${previous.slice(-longestContext)}\n${passage}`
}

export function isQuestion(passage: string): boolean {
  return /[?？]["')\]]?\s*$/.test(passage)
}
