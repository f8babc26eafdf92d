/** A value of JSON. */
export type JSONValue = null | string | number | boolean | JSONValue[] | JSONObject
/** An object of JSON. Undefined fields are left out. */
export type JSONObject = { [key: string]: JSONValue | undefined }

/** True for every object but arrays. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** True for objects without a class, also those of another realm. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * True for a string that every store returns unchanged, so that two ids never become one: not empty, without a lone surrogate, which UTF-8
 * can't encode, and without NUL, at which some stores end a string.
 */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0')
}

/** How deep JSON of others may be nested. Deeper nesting is an attempt to exhaust the stack, not a message. */
export const maxDepth = 100

/** True for JSON that is nested deeper than `maxDepth`. Reads the text once, and does not parse it. */
export function isDeep(text: string): boolean {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (inString) {
      if (code === 92) index++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 91 || code === 123) {
      if (++depth > maxDepth) return true
    } else if (code === 93 || code === 125) depth--
  }
  return false
}

/**
 * The text of a value that leaves the process. JSON has no bigint, which the validated value of a schema may contain: it is written as a
 * text of its digits.
 */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner))
  }
}

/** True for a value that is stored as JSON and read again as it was: no class, no function, no number that JSON has not. */
export function isStorable(value: unknown, depth = 0): value is JSONValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || depth > 16) return false
  if (Array.isArray(value)) return value.every((item) => isStorable(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return false
  return Object.values(value).every((item) => item === undefined || isStorable(item, depth + 1))
}

/** JSON with sorted keys: equal for equal values. */
export function orderedJSON(value: unknown): string {
  return JSON.stringify(value, sortKeys)
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** A copy of arrays and of objects without a class, however deep; every other value is shared. The value must not have circles. */
export function copyPlain<T>(value: T): T {
  return typeof value === 'object' && value !== null ? (copyObject(value) as T) : value
}

function copyObject(value: object): object {
  if (Array.isArray(value)) {
    const copy: unknown[] = value.slice()
    for (let index = 0; index < copy.length; index++) {
      const inner = copy[index]
      if (typeof inner === 'object' && inner !== null) copy[index] = copyObject(inner)
    }
    return copy
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  const copy: Record<string, unknown> = { ...value }
  for (const key in copy) {
    const inner = copy[key]
    if (typeof inner === 'object' && inner !== null) copy[key] = copyObject(inner)
  }
  return copy
}

/** True for equal values: the same arrays and objects, key by key. Strings of a copy are the same strings, so that this reads no text. */
export function isSamePlain(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  return isSameObject(one as Record<string, unknown>, other as Record<string, unknown>)
}

function isSameObject(one: Record<string, unknown>, other: Record<string, unknown>): boolean {
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false
    for (let index = 0; index < one.length; index++) {
      if (one[index] !== other[index] && !isSamePlain(one[index], other[index])) return false
    }
    return true
  }
  let count = 0
  for (const key in one) {
    count++
    const inner = one[key]
    if (inner !== other[key] && !isSamePlain(inner, other[key])) return false
  }
  const found = count
  for (const _ in other) count--
  // Two dates have no keys.
  return count === 0 && (found > 0 || (isPlainObject(one) && isPlainObject(other)))
}
