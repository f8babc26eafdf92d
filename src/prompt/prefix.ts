import { isObject } from '../base/json.ts'
import { toBase64 } from '../message/file-data.ts'

/** A hash of one message as a provider receives it, and its size in bytes. Equal for equal bytes; small enough to store. */
export type Fingerprint = `${string}:${number}`

const memo = new WeakMap<object, Fingerprint>()

/**
 * The fingerprint of a message of a prompt, or of a tool. Cache markers are left out: their positions change from step to step, and
 * providers don't count them as content. The order of keys matters only inside of payloads, where a model sees it.
 */
export function fingerprint(message: object): Fingerprint {
  let known = memo.get(message)
  if (!known) {
    known = hash(canonicalJSON(message))
    memo.set(message, known)
  }
  return known
}

export interface CommonPrefix {
  /** The number of equal messages, from the start. */
  messages: number
  bytes: number
  /** The share of the previous prompt that the next one begins with. 1: all of it, so that a provider's cache can serve it whole. */
  ratio: number
}

export function commonPrefix(previous: readonly Fingerprint[], next: readonly Fingerprint[]): CommonPrefix {
  let messages = 0
  while (messages < previous.length && previous[messages] === next[messages]) messages++
  const bytes = sumBytes(previous.slice(0, messages))
  const before = sumBytes(previous)
  return { messages, bytes, ratio: before === 0 ? 1 : bytes / before }
}

export function bytesOf(print: Fingerprint): number {
  return Number(print.slice(print.lastIndexOf(':') + 1))
}

function sumBytes(prints: readonly Fingerprint[]): number {
  return prints.reduce((sum, print) => sum + bytesOf(print), 0)
}

/** JSON with the keys of messages and parts sorted. */
export function canonicalJSON(value: unknown): string {
  if (value instanceof URL) return JSON.stringify(value.href)
  if (value instanceof Uint8Array) return JSON.stringify(toBase64(value))
  if (Array.isArray(value)) return `[${value.map(canonicalJSON).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const fields: string[] = []
  for (const key of Object.keys(value).sort()) {
    const json = field(value, key)
    if (json !== undefined) fields.push(`${JSON.stringify(key)}:${json}`)
  }
  return `{${fields.join(',')}}`
}

function field(owner: Record<string, unknown>, key: string): string | undefined {
  const value = owner[key]
  if (value === undefined) return undefined
  if (key === 'providerOptions') return optionsJSON(value)
  return isPayload(owner.type, key) ? JSON.stringify(value) : canonicalJSON(value)
}

function isPayload(type: unknown, key: string): boolean {
  if (type === 'tool-call') return key === 'input'
  if (type === 'json' || type === 'error-json') return key === 'value'
  return type === 'function' && key === 'inputSchema'
}

function optionsJSON(options: unknown): string | undefined {
  if (!isObject(options)) return undefined
  const unmarked = Object.entries(options).map(([provider, values]) => [provider, withoutMarkers(values)] as const)
  const present = unmarked.filter(([, values]) => Object.keys(values).length > 0)
  return present.length > 0 ? canonicalJSON(Object.fromEntries(present)) : undefined
}

function withoutMarkers(values: unknown): Record<string, unknown> {
  const entries = isObject(values) ? Object.entries(values) : []
  return Object.fromEntries(entries.filter(([key]) => !/^cache[-_]?(control|point)$/i.test(key)))
}

/** Two hashes of 32 bits and the length in UTF-8. Not cryptographic: it only has to distinguish prompts. */
function hash(text: string): Fingerprint {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    high = Math.imul(high ^ unit, 0x9e3779b1)
    low = Math.imul(low ^ unit, 0x5f356495)
    // A surrogate counts two bytes: the pair is four.
    if (unit >= 0x80) bytes += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  return `${hex(high)}${hex(low)}:${bytes}`
}

function hex(number: number): string {
  return (number >>> 0).toString(16).padStart(8, '0')
}
