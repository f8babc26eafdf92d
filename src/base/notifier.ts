import type { Vigil } from './keep-alive.ts'

/** One promise for all who wait for the same thing. While anybody does, the vigil is kept. */
export class News {
  readonly #vigil: Vigil | undefined
  #next: PromiseWithResolvers<void> | undefined

  constructor(vigil: Vigil | undefined) {
    this.#vigil = vigil
  }

  next(): Promise<void> {
    if (!this.#next) {
      this.#next = Promise.withResolvers()
      this.#vigil?.begin()
    }
    return this.#next.promise
  }

  ring(): void {
    if (!this.#next) return
    this.#next.resolve()
    this.#next = undefined
    this.#vigil?.end()
  }
}
