/** What a file is taken to cost. It depends on the model, the resolution and the pages, none of which are known here. */
export const FILE_TOKENS = 1000

/**
 * About how many tokens a text takes: a quarter of a token a character in ASCII, half in other alphabets, one in scripts where a
 * character is a word. An estimate for budgets and displays, typically within a fifth of what a provider bills.
 */
export function estimateTokens(text: string): number {
  let quarters = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    quarters += unit < 0x80 ? 1 : unit < 0x2e80 ? 2 : 4
  }
  return Math.ceil(quarters / 4)
}
