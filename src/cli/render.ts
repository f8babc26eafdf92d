import { styleText } from 'node:util'
import type { Chunk } from '../message/chunk.ts'

const gutter = 8
const margin = gutter + 2

/** Shows the chunks of a thread: the author on the left, the text on the right. */
export class ThreadView {
  readonly #write: (text: string) => void
  readonly #width: number
  /** The column of the cursor; 0 at the start of a line. */
  #column = 0
  /** Space that is written only if text follows it on its line. */
  #space = ''
  #runs = 0
  #steps = 0

  constructor(write: (text: string) => void, width: number) {
    this.#write = write
    this.#width = width
  }

  show(chunk: Chunk): void {
    switch (chunk.type) {
      case 'start':
        this.#steps = 0
        return this.heading(`run ${++this.#runs}`)
      case 'step-start':
        this.#steps++
        return
      case 'data-user-message':
        return this.#input(contentsOf(chunk.data))
      case 'text-start':
        return this.#begin('agent', 'agent')
      case 'text-delta':
        if (this.#column === 0) this.#begin('agent', 'agent')
        return this.#flow(chunk.payload.text)
      case 'text-end':
        return this.end()
      case 'tool-call':
        return this.line('tool', 'tool', `${chunk.payload.toolName} ${JSON.stringify(chunk.payload.args)}`)
      case 'tool-result':
        return this.line('tool', 'tool', `${chunk.payload.toolName} = ${JSON.stringify(chunk.payload.result)}`)
      case 'tool-error':
        return this.line('problem', 'tool', `${chunk.payload.toolName} failed: ${chunk.payload.error.message}`)
      case 'tool-output-denied':
        return this.line('problem', 'tool', `${chunk.payload.toolName} was declined`)
      default:
    }
  }

  heading(text: string): void {
    this.end()
    this.#write(`\n${style.title(text.padStart(gutter))}\n`)
  }

  /** A line of its own, also in the middle of an agent's text. */
  line(voice: Voice, who: string, text: string, note = ''): void {
    this.#begin(voice, who)
    this.#flow(text)
    if (note) this.#flow(`  ${note}`, 'note')
    this.end()
  }

  /** A question as a line, for the reader of the terminal to write. */
  prompt(question: string): string {
    this.end()
    return `${style.asks('asks'.padStart(gutter))}  ${question} `
  }

  /** Input that starts a run, or enters it between two steps. */
  #input(text: string): void {
    if (this.#steps === 0) this.line('you', 'you', text)
    else this.line('you', `step ${this.#steps + 1}`, text, '(enters here)')
  }

  #begin(voice: Voice, who: string): void {
    this.end()
    this.#write(`${style[voice](who.padStart(gutter))}  `)
    this.#column = margin
  }

  /** Breaks lines between words, so that the text stays in its column. */
  #flow(text: string, voice?: Voice): void {
    for (const piece of text.match(/\n|[^\S\n]+|\S+/g) ?? []) {
      if (piece !== '\n' && piece.trim() === '') this.#space += piece
      else if (piece === '\n') this.#break()
      else this.#word(piece, voice)
    }
  }

  #word(word: string, voice: Voice | undefined): void {
    if (this.#space !== '' && this.#column + this.#space.length + word.length > this.#width) this.#break()
    this.#write(this.#space + (voice ? style[voice](word) : word))
    this.#column += this.#space.length + word.length
    this.#space = ''
  }

  #break(): void {
    this.#write(`\n${' '.repeat(margin)}`)
    this.#column = margin
    this.#space = ''
  }

  /** Ends the line that is being written, if any. */
  end(): void {
    if (this.#column > 0) this.#write('\n')
    this.#column = 0
    this.#space = ''
  }
}

function contentsOf(signal: unknown): string {
  const { contents } = signal as { contents?: unknown }
  return typeof contents === 'string' ? contents : JSON.stringify(contents)
}

type Paint = (text: string) => string

/** Colors by their meaning. Node leaves them out without a terminal, and if NO_COLOR is set. */
export const style = {
  title: (text) => styleText('bold', text),
  you: (text) => styleText('cyan', text),
  agent: (text) => styleText('green', text),
  tool: (text) => styleText('yellow', text),
  asks: (text) => styleText('magenta', text),
  note: (text) => styleText('dim', text),
  problem: (text) => styleText('red', text),
} satisfies Record<string, Paint>

type Voice = keyof typeof style
