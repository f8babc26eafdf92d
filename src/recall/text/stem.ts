const endings: ReadonlyArray<readonly [string, string]> = [
  ['sses', 'ss'], ['ies', 'y'], ['ing', ''], ['edly', ''], ['ed', ''], ['ly', ''], ['es', 'e'], ['s', ''],
]

/**
 * The part of an English word that its forms share, roughly: `dances`, `danced` and `dancing` are one word. It need not be a word, only
 * the same for a question and for what answers it.
 */
export function stem(word: string): string {
  let stemmed = word
  for (const [ending, instead] of endings) {
    if (!stemmed.endsWith(ending) || stemmed.length - ending.length < 3) continue
    stemmed = stemmed.slice(0, -ending.length) + instead
    break
  }
  const last = stemmed.at(-1) ?? ''
  if (stemmed.length > 3 && last === stemmed.at(-2) && !'lsz'.includes(last)) stemmed = stemmed.slice(0, -1)
  if (stemmed.length > 4 && stemmed.endsWith('e')) stemmed = stemmed.slice(0, -1)
  if (stemmed.length > 3 && stemmed.endsWith('y')) stemmed = `${stemmed.slice(0, -1)}i`
  return stemmed
}
