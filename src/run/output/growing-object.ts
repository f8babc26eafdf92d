import { partialJSON } from './partial-json.ts'
import type { Run } from '../loop/run.ts'

/** A structured answer while it is written: shown each time that more of it is certain. */
export class GrowingObject {
  #read = 0
  #shown = ''

  /** Reads when the text has grown by a part of itself, so that reading it over and over costs no more than it is long. */
  async grow(run: Run, said: string): Promise<void> {
    const text = run.unfinished + said
    if (text.length - this.#read < this.#read / 32) return
    this.#read = text.length
    const answer = partialJSON(text)
    const object = answer === undefined ? undefined : run.structured?.partOf(answer)
    if (object === undefined) return
    const shown = JSON.stringify(object)
    if (shown === this.#shown) return
    this.#shown = shown
    await run.say(run.chunk('object', { object }))
  }
}
