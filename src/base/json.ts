export type JSONValue = null | string | number | boolean | JSONValue[] | JSONObject
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

/** JSON with sorted keys: equal for equal values. */
export function orderedJSON(value: unknown): string {
  return JSON.stringify(value, sortKeys)
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
