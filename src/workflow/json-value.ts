import { describe, HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'

/** The most characters that a value of a run may have as JSON. */
export const mostOfValue: number = 16 * 1024 * 1024

/** Values of up to so many nodes, so much text and so much nesting are copied without their text. */
const mostNodes = 10_000
const mostText = 1_000_000
const mostNesting = 100

/** A value as it is stored and as the next step reads it: what `JSON.parse(JSON.stringify(value))` gives. */
export function toJSONValue(value: unknown, subject: string): JSONValue | undefined {
  const copy = new PlainCopy().of(value, 0)
  if (copy !== notPlain) return copy
  const text = asJSON(value, subject)
  if (text === undefined) return undefined
  if (text.length <= mostOfValue) return JSON.parse(text) as JSONValue
  const size = `${subject} has ${text.length} characters as JSON; a run stores at most ${mostOfValue}.`
  const message = `${size} Store it elsewhere, and pass its name.`
  throw new HeedError('step_output_invalid', message, { details: { characters: text.length, most: mostOfValue } })
}

function asJSON(value: unknown, subject: string): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    throw new HeedError('step_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
}

const notPlain: unique symbol = Symbol('not plain')

/**
 * Copies a small value that is JSON already: most values of steps are, and the copy takes a fraction of the time that their text takes.
 * `notPlain` for all others, such as dates, values with `toJSON()` and undefined fields.
 */
class PlainCopy {
  #nodes = mostNodes
  #text = mostText

  of(value: unknown, depth: number): JSONValue | typeof notPlain {
    if (typeof value === 'string') {
      this.#text -= value.length
      return this.#text < 0 ? notPlain : value
    }
    if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : notPlain
    if (value === null || typeof value === 'boolean') return value
    if (typeof value !== 'object' || --this.#nodes < 0 || depth > mostNesting || 'toJSON' in value) return notPlain
    if (Array.isArray(value)) return this.#list(value, depth)
    const prototype: unknown = Object.getPrototypeOf(value)
    return prototype === Object.prototype || prototype === null ? this.#object(value as Record<string, unknown>, depth) : notPlain
  }

  #list(list: readonly unknown[], depth: number): JSONValue[] | typeof notPlain {
    this.#nodes -= list.length
    if (this.#nodes < 0) return notPlain
    const copy: JSONValue[] = []
    for (const item of list) {
      const inner = this.of(item, depth + 1)
      if (inner === notPlain) return notPlain
      copy.push(inner)
    }
    return copy
  }

  #object(object: Record<string, unknown>, depth: number): JSONValue | typeof notPlain {
    const copy: Record<string, JSONValue> = {}
    for (const key of Object.keys(object)) {
      this.#text -= key.length
      const inner = this.of(object[key], depth + 1)
      // An assignment of this name would set the prototype.
      if (inner === notPlain || key === '__proto__') return notPlain
      copy[key] = inner
    }
    return copy
  }
}
