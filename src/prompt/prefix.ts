import { isObject } from '../base/json.ts'
import { toBase64 } from '../message/file-data.ts'

/** A hash of what one message says to a provider, and how many bytes that is. Equal for equal bytes; small enough to store. */
export type Fingerprint = `${string}:${number}`

const memo = new WeakMap<object, Fingerprint>()

/**
 * The fingerprint of a message of a prompt, or of a tool. Cache markers don't count: where they stand changes from step to step
 * and no provider counts them as content. The order of keys counts only inside of payloads, where a model sees it.
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
  /** How many messages the two have in common, from the start. */
  messages: number
  bytes: number
  /** The share of the previous prompt that the next one begins with. 1: all of it, so a provider's cache serves it whole. */
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

/** JSON with the keys of messages and parts in one order, whoever wrote them. */
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
  const kept = Object.entries(options).map(([provider, values]) => [provider, withoutMarkers(values)] as const)
  const told = kept.filter(([, values]) => Object.keys(values).length > 0)
  return told.length > 0 ? canonicalJSON(Object.fromEntries(told)) : undefined
}

function withoutMarkers(values: unknown): Record<string, unknown> {
  const entries = isObject(values) ? Object.entries(values) : []
  return Object.fromEntries(entries.filter(([key]) => !/^cache[-_]?(control|point)$/i.test(key)))
}

/** Two lanes of 32 bits over the text, and its length in UTF-8. Not for secrets: it only has to tell prompts apart. */
function hash(text: string): Fingerprint {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    high = Math.imul(high ^ unit, 0x9e3779b1)
    low = Math.imul(low ^ unit, 0x5f356495)
    // Half of a surrogate pair: the pair is four bytes.
    if (unit >= 0x80) bytes += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35)
  low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35)
  return `${hex(high)}${hex(low)}:${bytes}`
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, '0')
}
