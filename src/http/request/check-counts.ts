import { HeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import { isLimited } from '../auth/scopes.ts'
import type { Route } from '../route.ts'
import type { RequestCall } from './call.ts'

/** How many values one field may have, in all of its objects and lists. */
const valuesOf: Readonly<Record<string, number>> = { metadata: 1_000, attributes: 1_000, requestContext: 1_000 }

/** How many entries one field may have. */
const entriesOf: Readonly<Record<string, number>> = {
  clientTools: 128, activeTools: 128, ids: 1_000, signalIds: 1_000, messageIds: 1_000, parts: 10_000, content: 10_000,
}

/** Fields with data of the caller: a name in it means nothing to a route. */
const data: ReadonlySet<string> = new Set([
  'payload', 'workingMemory', 'value', 'delta', 'args', 'input', 'rawInput', 'result', 'output', 'resumeData', 'inputData',
  'initialState', 'schema', 'inputSchema',
  'parameters', 'result_schema',
])

/**
 * How many messages a request may have, how many values in all and in its tools, and how many characters in all of its texts. A chat
 * repeats all messages of its page; the message that is sent of them is counted with the others.
 */
const limits = {
  limited: { messages: 1_000, values: 50_000, clientTools: 10_000, characters: 1_000_000 },
  chat: { messages: 10_000, values: 200_000, clientTools: 10_000, characters: Infinity },
  other: { messages: 10_000, values: 500_000, clientTools: 500_000, characters: Infinity },
}

/** The contents of files, which are not read as text. */
const files: ReadonlySet<string> = new Set(['data', 'image', 'url'])

/**
 * Rejects a body with more entries than a route handles at once, by the name of the field: the number of bytes alone bounds neither the
 * rows that are written for it nor the time that it takes.
 */
export function checkCounts(route: Route, { body, principal }: RequestCall): void {
  if (!route.body || route.anonymous) return
  const most = limits[!isLimited(principal) ? 'other' : route.relays ? 'chat' : 'limited']
  new Counts(most).field('', body, '')
  if (most.characters < Infinity) new Characters(most.characters).value(body, '')
}

type Limits = (typeof limits)['limited']

class Counts {
  readonly #most: Limits
  #values = 0

  constructor(most: Limits) {
    this.#most = most
  }

  field(name: string, value: unknown, path: string): void {
    if (typeof value !== 'object' || value === null) return
    const entries = name === 'messages' ? this.#most.messages : limitOf(entriesOf, name)
    const size = Array.isArray(value) ? value.length : Object.keys(value).length
    if (size > entries) throw tooMany(path, entries, 'entries', path)
    const values = name === 'clientTools' ? this.#most.clientTools : limitOf(valuesOf, name)
    const counted = values < Infinity || data.has(name)
    const within = counted ? countValues(value, Math.min(values, this.#most.values)) : size
    if (within > values) throw tooMany(path, values, 'values', path)
    this.#values += within
    if (this.#values > this.#most.values) throw tooMany('The body', this.#most.values, 'values', path)
    if (counted) return
    if (Array.isArray(value)) for (const item of value) this.field('', item, path)
    else if (isPlainObject(value)) for (const key of Object.keys(value)) this.field(key, value[key], path === '' ? key : `${path}.${key}`)
  }
}

/** Counts the texts and names of a body: what a route and the run that it starts do with a text takes time by its length. */
class Characters {
  readonly #most: number
  #count = 0

  constructor(most: number) {
    this.#most = most
  }

  value(value: unknown, path: string): void {
    if (typeof value === 'string') return this.#add(value, path)
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      for (const item of value) this.value(item, path)
      return
    }
    const own = value as Record<string, unknown>
    const isFile = own.type === 'file' || own.type === 'image' || typeof own.contentType === 'string'
    for (const name of Object.keys(own)) {
      const inner = path === '' ? name : `${path}.${name}`
      this.#add(name, path)
      if (!(isFile && files.has(name) && typeof own[name] === 'string')) this.value(own[name], inner)
    }
  }

  #add(text: string, path: string): void {
    this.#count += text.length
    if (this.#count > this.#most) throw tooMany(path, this.#most, 'characters', path)
  }
}

function limitOf(counts: Readonly<Record<string, number>>, name: string): number {
  return Object.hasOwn(counts, name) ? (counts[name] ?? Infinity) : Infinity
}

/** The number of values in all objects and lists of a value; what is above `most` is not counted. */
function countValues(value: unknown, most: number): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner = Object.values(value)
  let count = inner.length
  for (let index = 0; index < inner.length && count <= most; index++) count += countValues(inner[index], most - count)
  return count
}

function tooMany(what: string, most: number, unit: 'entries' | 'values' | 'characters', path: string): HeedError {
  const field = path.slice(0, 200)
  const has = unit === 'characters' ? 'and the texts before it have' : 'has'
  const message = `${what.slice(0, 200)} ${has} more than ${most} ${unit}. Send fewer, in several requests.`
  return new HeedError('invalid_argument', message, { details: { field, most } })
}
