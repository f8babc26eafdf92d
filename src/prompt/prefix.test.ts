import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytesOf, canonicalJSON, commonPrefix, fingerprint } from './explain.ts'

/** Also characters that are half of a pair, and those that are not assigned. */
const anyCharacters = fc.array(fc.integer({ min: 0, max: 0x10FFFF })).map((codes) => String.fromCodePoint(...codes))

const text = (content: string, providerOptions?: object) => ({ role: 'user', content: [
  { type: 'text', text: content, ...(providerOptions && { providerOptions }) },
] })

describe('a fingerprint', () => {
  it('is equal for equal messages in any order of keys, and is computed once', () => {
    const message = text('a')
    expect(fingerprint(message)).toBe(fingerprint(message))
    expect(fingerprint({ content: [{ text: 'a', type: 'text' }], role: 'user' })).toBe(fingerprint(message))
    expect(fingerprint(text('b'))).not.toBe(fingerprint(message))
  })

  it('ignores cache markers, and no other options', () => {
    const marked = text('a', { anthropic: { cacheControl: { type: 'ephemeral' } }, bedrock: { cachePoint: { type: 'default' } } })
    expect(fingerprint(marked)).toBe(fingerprint(text('a')))
    expect(fingerprint(text('a', { openai: { itemId: '1' } }))).not.toBe(fingerprint(text('a')))
  })

  it('depends on the order of keys where the model sees it', () => {
    const call = (input: object) => ({ role: 'assistant', content: [
      { type: 'tool-call', toolCallId: 'c', toolName: 't', input },
    ] })
    expect(fingerprint(call({ a: 1, b: 2 }))).not.toBe(fingerprint(call({ b: 2, a: 1 })))
  })

  it('is equal for bytes and their base64, and for a URL and its text', () => {
    const file = (data: unknown) => ({ role: 'user', content: [
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data } },
    ] })
    expect(fingerprint(file(new Uint8Array([0, 1, 2])))).toBe(fingerprint(file('AAEC')))
    expect(canonicalJSON({ url: new URL('https://example.com/a') })).toBe('{"url":"https://example.com/a"}')
  })

  it('counts bytes as they go over the wire', () => {
    fc.assert(fc.property(anyCharacters, content => {
      const message = text(content)
      expect(bytesOf(fingerprint(message))).toBe(new TextEncoder().encode(canonicalJSON(message)).length)
    }))
  })
})

describe('the common prefix of two prompts', () => {
  const prints = (...contents: string[]) => contents.map(content => fingerprint(text(content)))

  it('is whole when the next prompt begins with the previous one', () => {
    const { messages, ratio } = commonPrefix(prints('a', 'b'), prints('a', 'b', 'c'))
    expect({ messages, ratio }).toEqual({ messages: 2, ratio: 1 })
    expect(commonPrefix([], prints('a'))).toEqual({ messages: 0, bytes: 0, ratio: 1 })
  })

  it('ends at the first message that differs, and is measured in bytes', () => {
    const before = prints('a', 'b', 'a much longer message than the others')
    const { messages, bytes, ratio } = commonPrefix(before, prints('a', 'b', 'c'))
    expect(messages).toBe(2)
    expect(bytes).toBe(bytesOf(before[0]!) + bytesOf(before[1]!))
    expect(ratio).toBeCloseTo(bytes / before.reduce((sum, print) => sum + bytesOf(print), 0))
    expect(commonPrefix(before, prints('x', 'b')).ratio).toBe(0)
  })
})
