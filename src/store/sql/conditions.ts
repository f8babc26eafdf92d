import type { SqlValue } from './statements.ts'

/** Conditions that are all to hold, each with its values. Only those that are asked for are in the text, so that indexes serve them. */
export class Conditions {
  readonly #texts: string[] = []
  readonly values: SqlValue[] = []

  add(text: string, ...values: SqlValue[]): this {
    this.#texts.push(text)
    this.values.push(...values)
    return this
  }

  get where(): string {
    return this.#texts.length === 0 ? '' : `WHERE ${this.#texts.join(' AND ')}`
  }
}
