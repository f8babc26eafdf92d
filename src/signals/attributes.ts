import { copyJSON, isPlainObject } from './json-copy.ts'
import { isXMLName } from './kinds.ts'
import { describe, refusal } from './refusal.ts'
import type { Signal, SignalAttributes, StoredAttributes } from './signal.ts'

/**
 * Attributes as they are stored and written: in the order given, `null` and `undefined` left out, objects and arrays as JSON.
 * `field` names them in errors; a sender's `ifActive.attributes` and `ifIdle.attributes` go through here at the send as well.
 */
export function normaliseAttributes(attributes: unknown, field = 'attributes'): StoredAttributes {
  if (attributes === undefined || attributes === null) return {}
  if (!isPlainObject(attributes)) throw refusal(field, `must be an object, not ${describe(attributes)}.`)
  const stored: Array<[string, string | number | boolean]> = []
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue
    if (!isXMLName(name)) throw refusal(`${field}.${name}`, unsafeName('an attribute name'))
    const copy = copyJSON(value, `${field}.${name}`)
    if (copy === null) continue
    stored.push([name, typeof copy === 'object' ? JSON.stringify(copy) : copy])
  }
  return Object.fromEntries(stored)
}

/** The signal with the attributes of its branch: they win, and one that was there already keeps its place. */
export function mergeAttributes(signal: Signal, branch: SignalAttributes | undefined, field = 'attributes'): Signal {
  const merged = { ...signal.attributes, ...normaliseAttributes(branch, field) }
  return Object.keys(merged).length === 0 ? signal : { ...signal, attributes: merged }
}

export function unsafeName(what: string): string {
  return `is not safe as ${what}: use letters, digits, "_", "." and "-", and begin with a letter or "_".`
}
