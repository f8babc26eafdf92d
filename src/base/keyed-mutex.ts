/** Work on one key is done one after the other, on different keys at once. Nothing is kept of a key on which nothing happens. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>()

  take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key)
    const result = before ? before.then(work) : work()
    const done = result.then(() => {}, () => {}).finally(() => {
      if (this.#last.get(key) === done) this.#last.delete(key)
    })
    this.#last.set(key, done)
    return result
  }
}
