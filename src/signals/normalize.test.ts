import { describe, expect, it } from 'vitest'
import { isHeedError } from '../base/errors.ts'
import { messageInputToSignal, normalizeAttributes, normalizeSignal } from './normalize.ts'
import { MAX_SIGNAL_BYTES } from './contents.ts'
import type { MessageInput, SignalAttributes, SignalInput } from './signal.ts'

const context = { id: 'generated', now: new Date('2026-03-01T10:00:00.000Z') }
const normalize = (input: object, options = {}) => normalizeSignal(input as SignalInput, { ...context, ...options })

function rejectionOf(send: () => unknown): { field: unknown; message: string } {
  try {
    send()
  } catch (error) {
    if (isHeedError(error) && error.code === 'invalid_signal') return { field: error.details?.field, message: error.message }
    throw error
  }
  throw new Error('The input was not rejected.')
}

describe('kinds', () => {
  it.each([
    ['user', 'user', 'user'],
    ['state', 'state', 'state'],
    ['reactive', 'reactive', 'system-reminder'],
    ['notification', 'notification', 'notification'],
    ['user-message', 'user', 'user'],
    ['system-reminder', 'reactive', 'system-reminder'],
  ])('%s is of type %s with the tag %s', (written, type, tagName) => {
    expect(normalize({ type: written, contents: 'x' })).toMatchObject({ type, tagName })
  })

  it('lets the sender choose the tag of any type', () => {
    expect(normalize({ type: 'notification', tagName: 'build.failed', contents: 'x' })).toMatchObject({
      type: 'notification',
      tagName: 'build.failed',
    })
  })
})

describe('the storable form', () => {
  it('has absent keys for absent fields, the given time, and an id in any case', () => {
    expect(normalize({ type: 'user', contents: 'Hello' })).toStrictEqual({
      id: 'generated',
      type: 'user',
      tagName: 'user',
      contents: 'Hello',
      createdAt: '2026-03-01T10:00:00.000Z',
    })
    expect(normalize({ type: 'user', id: 'mine', contents: '' }, { now: 0 })).toMatchObject({
      id: 'mine',
      createdAt: '1970-01-01T00:00:00.000Z',
    })
  })

  it('keeps scalars in attributes, writes the rest as JSON, leaves null and undefined out', () => {
    const scalars = { b: 'text', a: 1, yes: true }
    const attributes = { ...scalars, list: [1, 'x'], object: { k: null }, none: null, missing: undefined, zero: -0 }
    const stored = normalize({ type: 'user', contents: 'x', attributes }).attributes
    expect(stored).toStrictEqual({ ...scalars, list: '[1,"x"]', object: '{"k":null}', zero: 0 })
    expect(Object.keys(stored ?? {})).toStrictEqual(['b', 'a', 'yes', 'list', 'object', 'zero'])
    expect(normalize({ type: 'user', contents: 'x', attributes: { none: null } })).not.toHaveProperty('attributes')
  })

  it('keeps an attribute named __proto__ an attribute', () => {
    const attributes = JSON.parse('{"__proto__":"x"}') as SignalAttributes
    expect(Object.entries(normalizeAttributes(attributes))).toStrictEqual([['__proto__', 'x']])
  })

  it('writes bytes as base64, URLs as text and images as files', () => {
    const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)
    const window = new Uint8Array([0, 0, 1, 2, 3, 0]).subarray(2, 5)
    const contents = [
      { type: 'file', data: window, mediaType: 'application/x-a', filename: 'a.bin' },
      { type: 'file', data: window.slice().buffer, mediaType: 'application/x-b' },
      { type: 'file', data: new URL('https://example.com/c.pdf'), mediaType: 'application/pdf' },
      { type: 'file', data: { type: 'url', url: new URL('https://example.com/d') }, mediaType: 'text/plain' },
      { type: 'file', data: { type: 'data', data: 'AQID' }, mediaType: 'text/plain' },
      { type: 'image', image: png },
      { type: 'image', image: 'https://example.com/e' },
      { type: 'image', image: 'data:image/gif;base64,R0lGODlh' },
      { type: 'image', image: 'AAAA', mediaType: 'image/avif' },
    ]
    expect(normalize({ type: 'user', contents }).contents).toStrictEqual([
      { type: 'file', data: 'AQID', mediaType: 'application/x-a', filename: 'a.bin' },
      { type: 'file', data: 'AQID', mediaType: 'application/x-b' },
      { type: 'file', data: 'https://example.com/c.pdf', mediaType: 'application/pdf' },
      { type: 'file', data: 'https://example.com/d', mediaType: 'text/plain' },
      { type: 'file', data: 'AQID', mediaType: 'text/plain' },
      { type: 'file', data: 'iVBORw0KGgo=', mediaType: 'image/png' },
      { type: 'file', data: 'https://example.com/e', mediaType: 'image/*' },
      { type: 'file', data: 'data:image/gif;base64,R0lGODlh', mediaType: 'image/gif' },
      { type: 'file', data: 'AAAA', mediaType: 'image/avif' },
    ])
  })

  it('encodes files of any length', () => {
    for (const length of [0, 1, 2, 3, 24_575, 24_576, 24_577, 100_000]) {
      const data = Uint8Array.from({ length }, (_, index) => (index * 31) % 256)
      const signal = normalize({ type: 'user', contents: [{ type: 'file', data, mediaType: 'x/y' }] })
      expect(signal.contents).toStrictEqual([{ type: 'file', data: Buffer.from(data).toString('base64'), mediaType: 'x/y' }])
    }
  })

  it('takes null for a field that is left out', () => {
    const left = { id: null, tagName: null, attributes: null, metadata: null, providerOptions: null }
    expect(normalize({ type: 'user', contents: 'x', ...left })).toStrictEqual(normalize({ type: 'user', contents: 'x' }))
    const file = { type: 'file', data: 'AAAA', mediaType: 'a/b' }
    const contents = [{ ...file, filename: null, providerOptions: null }]
    expect(normalize({ type: 'user', contents }).contents).toStrictEqual([file])
  })

  it('has one form for one text, whether it came as a string or as a part', () => {
    expect(normalize({ type: 'user', contents: [{ type: 'text', text: 'Hi' }] }).contents).toBe('Hi')
    expect(normalize({ type: 'user', contents: [] }).contents).toBe('')
    const marked = [{ type: 'text', text: 'Hi', providerOptions: { p: { cache: true } } }]
    expect(normalize({ type: 'user', contents: marked }).contents).toStrictEqual(marked)
  })

  it('copies metadata and provider options as JSON would, and shares nothing with the input', () => {
    const input = {
      type: 'user',
      contents: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }],
      attributes: { a: 1 },
      metadata: { at: new Date(0), gone: undefined, deep: [{ x: 1 }, undefined] },
      providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } },
    }
    const before = structuredClone(input)
    const signal = normalize(Object.freeze(input))
    expect(input).toStrictEqual(before)
    expect(signal.metadata).toStrictEqual({ at: '1970-01-01T00:00:00.000Z', deep: [{ x: 1 }, null] })
    expect(signal.providerOptions).toStrictEqual(input.providerOptions)
    expect(signal.providerOptions?.anthropic).not.toBe(input.providerOptions.anthropic)
    expect(JSON.parse(JSON.stringify(signal))).toStrictEqual(signal)
  })
})

describe('messages', () => {
  it.each<[MessageInput, object]>([
    ['Hello', { contents: 'Hello' }],
    [[{ type: 'text', text: 'Hello' }], { contents: 'Hello' }],
    [{ contents: 'Hello', attributes: { name: 'Ada' }, id: 'm1' }, { contents: 'Hello', attributes: { name: 'Ada' }, id: 'm1' }],
    [{ contents: 'Hello', metadata: { a: 1 }, providerOptions: { p: {} } }, { metadata: { a: 1 }, providerOptions: { p: {} } }],
  ])('%j is a signal of type user', (input, expected) => {
    expect(messageInputToSignal(input, context)).toMatchObject({ type: 'user', tagName: 'user', ...expected })
  })

  it('cannot choose a type or a tag', () => {
    const input: object = { type: 'notification', tagName: 'notification', contents: 'CI is green' }
    expect(() => messageInputToSignal(input as MessageInput, context)).toThrow(expect.objectContaining({ code: 'invalid_signal', details: { field: 'type' } }))
  })
})

describe('invalid input', () => {
  it.each<[string, unknown]>([
    ['signal', undefined],
    ['signal', 'text'],
    ['signal', []],
    ['type', { contents: 'x' }],
    ['type', { type: 'github-review', contents: 'x' }],
    ['type', { type: 'constructor', contents: 'x' }],
    ['tagName', { type: 'user', tagName: '', contents: 'x' }],
    ['tagName', { type: 'user', tagName: '1st', contents: 'x' }],
    ['tagName', { type: 'user', tagName: 'a b', contents: 'x' }],
    ['tagName', { type: 'user', tagName: 'a>', contents: 'x' }],
    ['tagName', { type: 'user', tagName: 'a\n', contents: 'x' }],
    ['tagName', { type: 'user', tagName: 7, contents: 'x' }],
    ['id', { type: 'user', id: '', contents: 'x' }],
    ['id', { type: 'user', id: 'x'.repeat(257), contents: 'x' }],
    ['id', { type: 'user', id: 7, contents: 'x' }],
    ['contents', { type: 'user' }],
    ['contents', { type: 'user', contents: null }],
    ['contents', { type: 'user', contents: { text: 'x' } }],
    ['contents[0]', { type: 'user', contents: ['x'] }],
    ['contents[1].type', { type: 'user', contents: [{ type: 'text', text: 'x' }, { type: 'tool-call' }] }],
    ['contents[0].text', { type: 'user', contents: [{ type: 'text', text: 1 }] }],
    ['contents[0].data', { type: 'user', contents: [{ type: 'file', mediaType: 'a/b' }] }],
    ['contents[0].data', { type: 'user', contents: [{ type: 'file', data: 'not base64!', mediaType: 'a/b' }] }],
    ['contents[0].data', { type: 'user', contents: [{ type: 'file', data: 'http://', mediaType: 'a/b' }] }],
    ['contents[0].data', { type: 'user', contents: [{ type: 'file', data: 'data:a/b;base64,***', mediaType: 'a/b' }] }],
    ['contents[0].data', { type: 'user', contents: [{ type: 'file', data: 'data:a/b', mediaType: 'a/b' }] }],
    ['contents[0].image', { type: 'user', contents: [{ type: 'image', image: 7 }] }],
    ['contents[0].mediaType', { type: 'user', contents: [{ type: 'file', data: 'AAAA' }] }],
    ['contents[0].mediaType', { type: 'user', contents: [{ type: 'file', data: 'AAAA', mediaType: '' }] }],
    ['contents[0].filename', { type: 'user', contents: [{ type: 'file', data: 'AAAA', mediaType: 'a/b', filename: 1 }] }],
    ['contents[0].providerOptions.p', { type: 'user', contents: [{ type: 'text', text: 'x', providerOptions: { p: 1 } }] }],
    ['attributes', { type: 'user', contents: 'x', attributes: ['a'] }],
    ['attributes.a b', { type: 'user', contents: 'x', attributes: { 'a b': 1 } }],
    ['attributes.a="', { type: 'user', contents: 'x', attributes: { 'a="': 1 } }],
    ['attributes.', { type: 'user', contents: 'x', attributes: { '': 1 } }],
    ['attributes.n', { type: 'user', contents: 'x', attributes: { n: Number.NaN } }],
    ['attributes.f', { type: 'user', contents: 'x', attributes: { f: () => 1 } }],
    ['attributes.o.big', { type: 'user', contents: 'x', attributes: { o: { big: 1n } } }],
    ['metadata', { type: 'user', contents: 'x', metadata: 'x' }],
    ['metadata', { type: 'user', contents: 'x', metadata: new Map() }],
    ['metadata.a[1].b', { type: 'user', contents: 'x', metadata: { a: [0, { b: new Set() }] } }],
    ['metadata.s', { type: 'user', contents: 'x', metadata: { s: Symbol('s') } }],
    ['providerOptions', { type: 'user', contents: 'x', providerOptions: [] }],
    ['providerOptions.openai', { type: 'user', contents: 'x', providerOptions: { openai: 'fast' } }],
  ])('[A3.1] %s is rejected at the send (case %#)', (field, input) => {
    const { field: named, message } = rejectionOf(() => normalize(input as object))
    expect(named).toBe(field)
    expect(message).toContain(field)
  })

  it('[A3.1] the error of an unknown type names tagName and the known types', () => {
    const { message } = rejectionOf(() => normalize({ type: 'github-review', contents: 'x' }))
    const names = ['"github-review"', 'tagName', 'user', 'state', 'reactive', 'notification']
    for (const name of names) expect(message).toContain(name)
  })

  it('[A3.1] contents over the limit are rejected, contents at the limit are not', () => {
    const file = (length: number) => [{ type: 'file', data: new Uint8Array(length), mediaType: 'a/b' }]
    expect(normalize({ type: 'user', contents: 'é'.repeat(5) }, { maxBytes: 10 }).contents).toHaveLength(5)
    expect(rejectionOf(() => normalize({ type: 'user', contents: 'é'.repeat(5) }, { maxBytes: 9 })).field).toBe('contents')
    expect(rejectionOf(() => normalize({ type: 'user', contents: '😀€' }, { maxBytes: 6 })).field).toBe('contents')
    expect(normalize({ type: 'user', contents: '😀€' }, { maxBytes: 7 }).contents).toBe('😀€')
    expect(normalize({ type: 'user', contents: file(6) }, { maxBytes: 8 }).contents).toHaveLength(1)
    expect(rejectionOf(() => normalize({ type: 'user', contents: file(7) }, { maxBytes: 8 })).field).toBe('contents')
    const twice = [{ type: 'text', text: '12345' }, { type: 'text', text: '12345' }]
    expect(rejectionOf(() => normalize({ type: 'user', contents: twice }, { maxBytes: 9 })).field).toBe('contents')
    expect(rejectionOf(() => normalize({ type: 'user', contents: 'x'.repeat(MAX_SIGNAL_BYTES + 1) })).field).toBe('contents')
    const metadata = { a: '12345' }
    expect(rejectionOf(() => normalize({ type: 'user', contents: 'x', metadata }, { maxBytes: 9 })).field).toBe('metadata')
  })

  it('[A3.1] metadata that refers to itself is rejected', () => {
    const metadata: Record<string, unknown> = {}
    metadata.self = metadata
    const { message, field } = rejectionOf(() => normalize({ type: 'user', contents: 'x', metadata }))
    expect(message).toContain('refers to itself')
    // The path is endless; the error has its beginning.
    expect([message.length < 250, String(field).endsWith('…')]).toEqual([true, true])
  })

  it('[A3.1] attributes of a route are rejected under the name of the route', () => {
    expect(rejectionOf(() => normalizeAttributes({ 'a b': 1 }, 'ifActive.attributes')).field).toBe('ifActive.attributes.a b')
  })

  it('[A3.1] messages are rejected with the name of the field too', () => {
    expect(rejectionOf(() => messageInputToSignal(7 as unknown as MessageInput, context)).field).toBe('message')
    expect(rejectionOf(() => messageInputToSignal({} as MessageInput, context)).field).toBe('contents')
  })
})
