/** How far long work is. */
export interface Progress {
  done: number
  total: number
}

const width = 24
const eraseLine = '\r\u001B[K'

/**
 * One line of a terminal that shows how far long work is. The cursor stays at its beginning, so that what the program writes meanwhile
 * replaces it.
 */
export class ProgressBar {
  readonly #write: (text: string) => void
  #isShown = false

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  show(work: string, { done, total }: Progress): void {
    const share = total > 0 ? Math.min(1, done / total) : 1
    const filled = Math.floor(share * width)
    const bar = '█'.repeat(filled) + '░'.repeat(width - filled)
    this.#write(`${eraseLine}${work} ${bar} ${Math.floor(share * 100)} % (${done} of ${total})\r`)
    this.#isShown = true
  }

  clear(): void {
    if (!this.#isShown) return
    this.#isShown = false
    this.#write(eraseLine)
  }
}
