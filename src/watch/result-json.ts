import type { JSONValue } from '../base/json.ts'

/** What is wrong with a result, and where: never the value itself, which an outside sender may have written. */
export interface ResultIssue {
  /** A JSON pointer of names that the schema has; empty for the whole result. */
  readonly pointer: string
  readonly code: ResultIssueCode
}

export type ResultIssueCode =
  /** The text is no JSON, or has more than one value. */
  | 'invalid_json'
  | 'too_large'
  | 'too_deep'
  | 'duplicate_key'
  /** `__proto__`, `constructor`, `prototype`. */
  | 'forbidden_key'
  /** A number that would change when it is read: too large, too precise, or a negative zero. */
  | 'inexact_number'
  /** An object with accessors, a class, or one that throws when it is read. */
  | 'not_plain'
  | 'type'
  | 'enum'
  | 'const'
  | 'pattern'
  | 'minLength'
  | 'maxLength'
  | 'max_bytes'
  /** Half of a character, or one without a glyph in text. */
  | 'forbidden_character'
  | 'minimum'
  | 'maximum'
  | 'multipleOf'
  | 'minItems'
  | 'maxItems'
  | 'required'
  | 'unexpected_property'

type ParsedResult =
  | { readonly ok: true; readonly value: JSONValue }
  | { readonly ok: false; readonly issues: readonly ResultIssue[] }

/** No accepted schema has a value with a longer text, nor one that is deeper. */
export const MAX_RESULT_LENGTH = 16_384
export const MAX_RESULT_DEPTH = 8

export const FORBIDDEN_KEYS: readonly string[] = ['__proto__', 'constructor', 'prototype']

/**
 * Reads the text that a judge wrote as its result, exactly once: a string in it that looks like JSON stays a string.
 *
 * `JSON.parse` would accept more than a reader of the text sees: of two equal keys the last one wins, large numbers change, and deep values
 * are built before any limit applies. Objects have no prototype here, so that a key can't reach one.
 */
export function parseResult(text: string): ParsedResult {
  if (text.length > MAX_RESULT_LENGTH) return failed('too_large')
  try {
    return { ok: true, value: new ResultReader(text).read() }
  } catch (error) {
    if (error instanceof Unreadable) return failed(error.code)
    throw error
  }
}

function failed(code: ResultIssueCode): ParsedResult {
  return { ok: false, issues: [{ pointer: '', code }] }
}

/** Carries the code alone: its text never leaves this file. */
class Unreadable extends Error {
  readonly code: ResultIssueCode
  constructor(code: ResultIssueCode) {
    super(code)
    this.code = code
  }
}

const blanks = /[ \t\n\r]*/y
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const words: ReadonlyArray<readonly [string, JSONValue]> = [['true', true], ['false', false], ['null', null]]
/** Longer than any number that a program writes. */
const MAX_NUMBER_LENGTH = 40

class ResultReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): JSONValue {
    const value = this.#value(1)
    this.#take(blanks)
    if (this.#at < this.#text.length) throw new Unreadable('invalid_json')
    return value
  }

  #value(depth: number): JSONValue {
    if (depth > MAX_RESULT_DEPTH) throw new Unreadable('too_deep')
    this.#take(blanks)
    const next = this.#text[this.#at]
    if (next === '{') return this.#object(depth)
    if (next === '[') return this.#array(depth)
    if (next === '"') return this.#string()
    for (const [word, value] of words) {
      if (!this.#text.startsWith(word, this.#at)) continue
      this.#at += word.length
      return value
    }
    return this.#number()
  }

  #object(depth: number): JSONValue {
    const object = Object.create(null) as Record<string, JSONValue>
    this.#list('}', () => {
      this.#take(blanks)
      const key = this.#string()
      if (FORBIDDEN_KEYS.includes(key)) throw new Unreadable('forbidden_key')
      if (Object.hasOwn(object, key)) throw new Unreadable('duplicate_key')
      this.#take(blanks)
      if (this.#text[this.#at] !== ':') throw new Unreadable('invalid_json')
      this.#at++
      object[key] = this.#value(depth + 1)
    })
    return object
  }

  #array(depth: number): JSONValue {
    const array: JSONValue[] = []
    this.#list(']', () => array.push(this.#value(depth + 1)))
    return array
  }

  /** The elements between brackets, with commas between them. */
  #list(end: string, readElement: () => void): void {
    this.#at++
    this.#take(blanks)
    if (this.#text[this.#at] === end) {
      this.#at++
      return
    }
    for (;;) {
      readElement()
      this.#take(blanks)
      const next = this.#text[this.#at++]
      if (next === end) return
      if (next !== ',') throw new Unreadable('invalid_json')
    }
  }

  #string(): string {
    const written = this.#take(string)
    if (written === '') throw new Unreadable('invalid_json')
    return JSON.parse(written) as string
  }

  #number(): number {
    const written = this.#take(number)
    if (written === '') throw new Unreadable('invalid_json')
    const value = Number(written)
    if (!isExact(written, value)) throw new Unreadable('inexact_number')
    return value
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const [found = ''] = pattern.exec(this.#text) ?? []
    this.#at += found.length
    return found
  }
}

/** True where the number, written again, has the digits that it was read from. */
function isExact(written: string, value: number): boolean {
  if (!Number.isFinite(value) || Object.is(value, -0) || written.length > MAX_NUMBER_LENGTH) return false
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return false
  return decimal(written) === decimal(String(value))
}

/** The digits and the power of ten of a number, in one form for all that are equal. */
function decimal(written: string): string {
  const [mantissa = '', power = '0'] = written.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = `${whole}${fraction}`.replace(/^-?0*/, '')
  const short = digits.replace(/0+$/, '')
  return short === '' ? '0' : `${short}e${Number(power) - fraction.length + digits.length - short.length}`
}
