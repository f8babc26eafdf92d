import { refused } from '../base/arguments.ts'
import type { JSONObject } from '../base/json.ts'
import { isContextPath, valueAt } from './context-rules.ts'

/** In characters. A longer value is a document: it is cut. */
const maxValue = 4_096

/** A place of a template: `{{path}}`, or `{{path || 'default'}}`. No text has both marks in any other form. */
const place = /(?<!\{)\{\{([^{}|'"]+)(?:\|\|\s*(?:'([^'{}]*)'|"([^"{}]*)")\s*)?\}\}(?!\})/gu
/** What other template languages would replace, and marks of ours that are no place. */
const otherMark = /\{\{|\}\}|\{%|<%|\$\{/u

/** The values that a template may read. */
export interface TemplateValues {
  context: JSONObject
  /** The keys that code declares. Others have no value. */
  keys: readonly string[]
}

/** Refuses marks that are no place, and places of keys that code does not declare. */
export function checkTemplate(field: string, text: string, keys: readonly string[] | undefined): void {
  const mark = otherMark.exec(text.replace(place, ''))?.[0]
  if (mark !== undefined) throw refused(field, `a text whose only templates are {{name}} and {{name || 'default'}}: it has '${mark}'`)
  for (const [, written = ''] of text.matchAll(place)) {
    const path = written.trim()
    if (!isContextPath(path)) throw refused(field, `a text whose templates name values of the request context, not '${path.slice(0, 64)}'`)
    if (keys && !keys.includes(keyOf(path))) {
      const known = keys.length === 0 ? 'It declares none.' : `It declares: ${keys.join(', ')}.`
      throw refused(field, `a text whose templates read keys that code declares in requestContextSchema, not '${keyOf(path)}'. ${known}`)
    }
  }
}

/**
 * The text with its values. A value is one line: a line break would let the sender of a request begin a paragraph of the instructions. A
 * place without a value and without a default stays as it is written, and its path is added to `unset`.
 */
export function renderTemplate(text: string, { context, keys }: TemplateValues, unset: string[]): string {
  return text.replace(place, (written, name: string, single: string | undefined, double: string | undefined) => {
    const path = name.trim()
    const value = keys.includes(keyOf(path)) ? valueAt(context, path) : undefined
    if (typeof value === 'string' && value !== '') return oneLine(value)
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
    const fallback = single ?? double
    if (fallback !== undefined) return fallback
    if (!unset.includes(path)) unset.push(path)
    return written
  })
}

function keyOf(path: string): string {
  return path.split('.', 1)[0] ?? path
}

/** Marks of templates in a value are data: nothing replaces them again. */
function oneLine(value: string): string {
  const cut = value.length > maxValue ? value.slice(0, maxValue) : value
  return cut.toWellFormed().replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
}
