import { isPlainObject, type JSONValue } from '../base/json.ts'
import { hasHiddenCharacters } from './candidate-text.ts'
import { FORBIDDEN_KEYS, MAX_RESULT_DEPTH, MAX_RESULT_LENGTH, type ResultIssue, type ResultIssueCode } from './result-json.ts'
import type { ResultNode, ResultValidation, Scalar } from './result-schema.ts'

/** The most issues that are reported: a longer list would grow with what a sender wrote. */
const MAX_ISSUES = 16
/** Elements and properties of a value that are looked at before its schema is. */
const MAX_PARTS = 1024

/**
 * Checks a value against a part of a schema and copies it. Types are compared as they are: nothing is coerced, completed or trimmed, texts
 * are equal byte for byte. Issues have codes and pointers of the schema alone, so that an error can't carry what the value was.
 */
export function validateResult(node: ResultNode, value: unknown): ResultValidation {
  const checker = new ValueChecker()
  try {
    const limit = exceeded(value)
    if (limit) return { ok: false, issues: [{ pointer: '', code: limit }] }
    const copy = checker.check(node, value, '')
    return checker.issues.length === 0 && copy !== undefined ? { ok: true, value: copy } : { ok: false, issues: checker.issues }
  } catch {
    // A proxy or an accessor threw. What it threw is not reported: it may quote the value.
    return { ok: false, issues: [{ pointer: '', code: 'not_plain' }] }
  }
}

/** The number of bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  return encoder.encode(text).length
}

const encoder = new TextEncoder()

/** The limit that a value exceeds, whatever its schema is. It stops at the first one, so that a huge value costs what a limit allows. */
function exceeded(value: unknown): ResultIssueCode | undefined {
  let parts = 0
  let length = 0
  const open: Array<{ value: unknown; depth: number }> = [{ value, depth: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.depth > MAX_RESULT_DEPTH) return 'too_deep'
    if (typeof next.value === 'string') length += next.value.length
    if (length > MAX_RESULT_LENGTH) return 'too_large'
    if (typeof next.value !== 'object' || next.value === null) continue
    if (Array.isArray(next.value) && next.value.length > MAX_PARTS) return 'too_large'
    for (const [key, inner] of ownValues(next.value)) {
      length += key.length
      if (++parts > MAX_PARTS) return 'too_large'
      open.push({ value: inner, depth: next.depth + 1 })
    }
  }
  return undefined
}

/** The own properties with their values. Accessors are not called: they count as undefined, which no schema allows. */
function* ownValues(object: object): Generator<[string, unknown]> {
  for (const key of Reflect.ownKeys(object)) {
    if (Array.isArray(object) && key === 'length') continue
    yield [String(key), Object.getOwnPropertyDescriptor(object, key)?.value]
  }
}

class ValueChecker {
  readonly issues: ResultIssue[] = []

  check(node: ResultNode, value: unknown, pointer: string): JSONValue | undefined {
    if (node.type === 'fixed') return isOneOf(node.values, value) ? value : this.#issue(pointer, node.code)
    if (node.type === 'object') return this.#object(node, value, pointer)
    if (node.type === 'array') return this.#array(node, value, pointer)
    if (node.type === 'string') return this.#string(node, value, pointer)
    if (node.type === 'null') return value === null ? null : this.#issue(pointer, 'type')
    if (node.type === 'boolean') return typeof value === 'boolean' ? value : this.#issue(pointer, 'type')
    return this.#number(node, value, pointer)
  }

  #string(node: Extract<ResultNode, { type: 'string' }>, value: unknown, pointer: string): string | undefined {
    if (typeof value !== 'string') return this.#issue(pointer, 'type')
    if (value.length > node.maxLength * 2) return this.#issue(pointer, 'maxLength')
    const length = Array.from(value).length
    if (length > node.maxLength) return this.#issue(pointer, 'maxLength')
    if (length < node.minLength) return this.#issue(pointer, 'minLength')
    if (utf8Length(value) > node.maxBytes) return this.#issue(pointer, 'max_bytes')
    if (node.pattern && !node.pattern.matches(value)) return this.#issue(pointer, 'pattern')
    if (node.isText && (!value.isWellFormed() || hasHiddenCharacters(value))) return this.#issue(pointer, 'forbidden_character')
    return value
  }

  #number(node: Extract<ResultNode, { type: 'number' | 'integer' }>, value: unknown, pointer: string): number | undefined {
    if (typeof value !== 'number') return this.#issue(pointer, 'type')
    if (!Number.isFinite(value) || Object.is(value, -0)) return this.#issue(pointer, 'inexact_number')
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) return this.#issue(pointer, 'inexact_number')
    if (node.type === 'integer' && !Number.isInteger(value)) return this.#issue(pointer, 'type')
    if (value < node.minimum) return this.#issue(pointer, 'minimum')
    if (value > node.maximum) return this.#issue(pointer, 'maximum')
    if (node.multipleOf !== undefined && !isMultiple(value, node.multipleOf)) return this.#issue(pointer, 'multipleOf')
    return value
  }

  #array(node: Extract<ResultNode, { type: 'array' }>, value: unknown, pointer: string): JSONValue[] | undefined {
    if (!Array.isArray(value)) return this.#issue(pointer, 'type')
    if (value.length > node.maxItems) return this.#issue(pointer, 'maxItems')
    if (value.length < node.minItems) return this.#issue(pointer, 'minItems')
    if (Reflect.ownKeys(value).length !== value.length + 1) return this.#issue(pointer, 'not_plain')
    const copy: JSONValue[] = []
    for (let index = 0; index < value.length; index++) {
      const item = this.check(node.items, Object.getOwnPropertyDescriptor(value, index)?.value, `${pointer}/${index}`)
      if (item !== undefined) copy.push(item)
    }
    return copy
  }

  #object(node: Extract<ResultNode, { type: 'object' }>, value: unknown, pointer: string): JSONValue | undefined {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#issue(pointer, 'type')
    if (!isPlainObject(value)) return this.#issue(pointer, 'not_plain')
    for (const key of Reflect.ownKeys(value)) {
      if (typeof key === 'string' && node.properties.has(key)) continue
      return this.#issue(pointer, FORBIDDEN_KEYS.includes(String(key)) ? 'forbidden_key' : 'unexpected_property')
    }
    const copy: Record<string, JSONValue> = {}
    for (const [name, property] of node.properties) {
      const own = Object.getOwnPropertyDescriptor(value, name)
      const at = `${pointer}/${name}`
      if (!own) {
        if (node.required.has(name)) this.#issue(at, 'required')
        continue
      }
      if (!('value' in own)) {
        this.#issue(at, 'not_plain')
        continue
      }
      const item = this.check(property, own.value, at)
      if (item !== undefined) copy[name] = item
    }
    return copy
  }

  #issue(pointer: string, code: ResultIssueCode): undefined {
    if (this.issues.length < MAX_ISSUES) this.issues.push({ pointer, code })
    return undefined
  }
}

function isOneOf(values: readonly Scalar[], value: unknown): value is Scalar {
  return values.includes(value as Scalar) && !Object.is(value, -0)
}

/** In whole units of the last decimal of `step`: dividing two fractions would round. */
function isMultiple(value: number, step: number): boolean {
  const scale = 10 ** (String(step).split('.')[1]?.length ?? 0)
  const [units, stepUnits] = [Math.round(value * scale), Math.round(step * scale)]
  return Number.isSafeInteger(units) && units / scale === value && units % stepUnits === 0
}
