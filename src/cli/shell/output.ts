/** An object that a command prints with `--json`. Fields are only added in later versions. */
interface Answer {
  type: string
  [field: string]: unknown
}

/** Answers go to standard output, everything else to standard error. */
export class Output {
  readonly isJSON: boolean

  constructor(isJSON: boolean) {
    this.isJSON = isJSON
  }

  /** Prints an answer: a line of text, or with `--json` a line with the object. */
  answer(text: string, value: Answer): void {
    process.stdout.write(`${this.isJSON ? JSON.stringify(value) : text}\n`)
  }

  /** Prints a part of an answer that is text. */
  write(text: string): void {
    process.stdout.write(text)
  }

  /** Prints what is no part of the answer, such as what to do next. Left out with `--json`. */
  note(text: string): void {
    if (!this.isJSON) process.stderr.write(`${text}\n`)
  }

  /** Prints what a person must know, also with `--json`. */
  warn(text: string): void {
    process.stderr.write(`${this.isJSON ? JSON.stringify({ warning: text }) : text}\n`)
  }
}
