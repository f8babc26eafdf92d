import { styleText } from 'node:util'

type Paint = (text: string) => string

/** Colours by what they mean. Node leaves them out where there is no terminal, and where NO_COLOR asks for none. */
export const style = {
  title: (text) => styleText('bold', text),
  you: (text) => styleText('cyan', text),
  agent: (text) => styleText('green', text),
  tool: (text) => styleText('yellow', text),
  asks: (text) => styleText('magenta', text),
  note: (text) => styleText('dim', text),
  problem: (text) => styleText('red', text),
} satisfies Record<string, Paint>

export type Voice = keyof typeof style
