import { describeValue } from '../base/arguments.ts'
import { isPlainObject } from '../base/json.ts'
import { invalidSignal } from './invalid-signal.ts'
import { copyJSON } from './json-copy.ts'
import type { Signal, SignalAttributes, StoredAttributes } from './signal.ts'
import { isXMLName } from './xml.ts'

/**
 * Attributes as they are stored and rendered: in the order of the input, without `null` and `undefined`, objects and arrays as JSON.
 * `field` is their name in errors: a send also normalises `ifActive.attributes` and `ifIdle.attributes`.
 */
export function normaliseAttributes(attributes: unknown, field = 'attributes'): StoredAttributes {
  if (attributes === undefined || attributes === null) return {}
  if (!isPlainObject(attributes)) throw invalidSignal(field, `must be an object, not ${describeValue(attributes)}.`)
  const stored: Array<[string, string | number | boolean]> = []
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue
    if (!isXMLName(name)) throw invalidSignal(`${field}.${name}`, unsafeName('an attribute name'))
    const copy = copyJSON(value, `${field}.${name}`)
    if (copy === null) continue
    stored.push([name, typeof copy === 'object' ? JSON.stringify(copy) : copy])
  }
  return Object.fromEntries(stored)
}

/** The signal with the attributes of its route (`ifActive`, `ifIdle`): they replace equal names in place and follow the others. */
export function mergeAttributes(signal: Signal, route: SignalAttributes | undefined, field = 'attributes'): Signal {
  const merged = { ...signal.attributes, ...normaliseAttributes(route, field) }
  return Object.keys(merged).length === 0 ? signal : { ...signal, attributes: merged }
}

export function unsafeName(kind: string): string {
  return `is not safe as ${kind}: use letters, digits, "_", "." and "-", and begin with a letter or "_".`
}
