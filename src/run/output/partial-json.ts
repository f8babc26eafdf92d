import type { JSONObject, JSONValue } from '../../base/json.ts'

/**
 * Parses the object or array that an incomplete text begins with: strings grow, numbers and literals appear when they are complete.
 * Undefined when none has begun, or when the text is not JSON.
 */
export function partialJSON(text: string): JSONValue | undefined {
  const start = text.search(/[{[]/)
  if (start < 0) return undefined
  try {
    return new PartialParser(text, start).value()
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A model that only opens brackets must not exhaust the stack. */
const maxDepth = 200

class PartialParser {
  readonly #text: string
  #at: number
  #depth = 0

  constructor(text: string, at: number) {
    this.#text = text
    this.#at = at
  }

  /** Undefined when the text ends before the value is known. */
  value(): JSONValue | undefined {
    switch (this.#next()) {
      case undefined:
        return undefined
      case '{':
        return this.#nested(() => this.#object())
      case '[':
        return this.#nested(() => this.#list())
      case '"':
        return this.#string().text
      default:
        return this.#literal()
    }
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > maxDepth) throw new SyntaxError('too deep')
    const result = read()
    this.#depth--
    return result
  }

  #object(): JSONObject {
    const object: JSONObject = {}
    this.#at++
    for (let next = this.#next(); next !== undefined && next !== '}'; next = this.#next()) {
      if (next === ',') {
        this.#at++
        continue
      }
      const name = this.#string()
      if (!name.closed || this.#next() === undefined) return object
      this.#take(':')
      const value = this.value()
      // As JSON.parse does: '__proto__' is a plain property.
      if (value !== undefined) Object.defineProperty(object, name.text, { value, enumerable: true, configurable: true, writable: true })
    }
    this.#at++
    return object
  }

  #list(): JSONValue[] {
    const list: JSONValue[] = []
    this.#at++
    for (let next = this.#next(); next !== undefined && next !== ']'; next = this.#next()) {
      if (next === ',') {
        this.#at++
        continue
      }
      const value = this.value()
      if (value !== undefined) list.push(value)
    }
    this.#at++
    return list
  }

  #string(): { text: string; closed: boolean } {
    this.#take('"')
    const begin = this.#at
    for (; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at]
      if (char === '\\') this.#at++
      else if (char === '"') return { text: JSON.parse(`"${this.#text.slice(begin, this.#at++)}"`) as string, closed: true }
    }
    this.#at = this.#text.length
    const whole = this.#text.slice(begin).replace(/(^|[^\\])((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$/, '$1$2')
    return { text: JSON.parse(`"${whole}"`) as string, closed: false }
  }

  #literal(): JSONValue | undefined {
    const [literal = ''] = /^[^\s,\]}]*/.exec(this.#text.slice(this.#at, this.#at + 64)) ?? []
    this.#at += literal.length
    if (this.#at >= this.#text.length) return undefined
    return JSON.parse(literal) as JSONValue
  }

  #next(): string | undefined {
    while (/\s/.test(this.#text[this.#at] ?? 'x')) this.#at++
    return this.#text[this.#at]
  }

  #take(char: string): void {
    if (this.#next() !== char) throw new SyntaxError(`expected ${char}`)
    this.#at++
  }
}
