import type { LanguageModelV4Message } from '@ai-sdk/provider'

/** Two hashes of 32 bits. Not cryptographic: they only have to tell whether a prompt that is made again has the same bytes. */
type Hash = readonly [high: number, low: number]

const memo = new WeakMap<object, Hash>()

/** Of a longer value of a file only its length, its beginning and its end count: it is stored once and does not change. */
const wholeFile = 4_096

/**
 * The hash of the messages of a prompt, in order. Messages are added as the prompt grows; the hash of a message object is computed once.
 */
export class PromptDigest {
  #count = 0
  #high = 0xdeadbeef
  #low = 0x41c6ce57

  /** Adds the messages that were appended since the last call. */
  extend(messages: readonly LanguageModelV4Message[]): this {
    for (; this.#count < messages.length; this.#count++) {
      const [high, low] = hashOf(messages[this.#count] as LanguageModelV4Message)
      this.#high = Math.imul(this.#high ^ high, 0x9e3779b1)
      this.#low = Math.imul(this.#low ^ low, 0x5f356495) ^ this.#high
    }
    return this
  }

  get hash(): string {
    return hex(this.#high) + hex(this.#low)
  }
}

function hashOf(message: LanguageModelV4Message): Hash {
  let hash = memo.get(message)
  if (!hash) memo.set(message, (hash = textHash(textOf(message))))
  return hash
}

function textOf(message: LanguageModelV4Message): string {
  const { content } = message
  const hasFile = typeof content !== 'string' && content.some((part) => (
    part.type === 'file' || part.type === 'reasoning-file' || (part.type === 'tool-result' && part.output.type === 'content')))
  return JSON.stringify(message, hasFile ? shortened : undefined)
}

function shortened(_: string, value: unknown): unknown {
  if (value instanceof Uint8Array) {
    const ends = value.length > wholeFile ? [...value.subarray(0, wholeFile / 2), ...value.subarray(-wholeFile / 2)] : [...value]
    return [value.length, ...ends]
  }
  if (typeof value !== 'string' || value.length <= wholeFile * 4) return value
  return [value.length, value.slice(0, wholeFile), value.slice(-wholeFile)]
}

function textHash(text: string): Hash {
  let high = 0x9747b28c
  let low = 0x85ebca6b
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    high = Math.imul(high ^ unit, 0x9e3779b1)
    low = Math.imul(low ^ unit, 0x5f356495)
  }
  return [high ^ (high >>> 15), low ^ (low >>> 13)]
}

function hex(number: number): string {
  return (number >>> 0).toString(16).padStart(8, '0')
}
