/** The assumed cost of a file. The real one depends on the model, the resolution and the pages, which are unknown here. */
export const FILE_TOKENS = 1000

/**
 * An estimate of the tokens of a text: a quarter of a token for a character in ASCII, half in other alphabets, one in scripts where a
 * character is a word. For budgets and displays; typically within a fifth of the number that a provider bills.
 */
export function estimateTokens(text: string): number {
  let quarters = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    quarters += unit < 0x80 ? 1 : unit < 0x2e80 ? 2 : 4
  }
  return Math.ceil(quarters / 4)
}
