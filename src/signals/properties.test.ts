import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JSONValue } from '../base/json.ts'
import { needsGuard, RESERVED_TAGS } from './tags.ts'
import { normalizeSignal } from './normalize.ts'
import { renderSignal } from './render.ts'
import { rowToSignal, signalToRow } from './conversions.ts'
import type { Signal, SignalInput } from './signal.ts'

const dangerous = fc.constantFrom(
  '<', '>', '</', '/>', '&', '"', "'", '&lt;', '&#10;', ']]>', '<!--', '\n', '\t', '\u0000', '\u200B', '\uD800', ' ', '/',
  '<user>', '</user>', '<user name="x">', '</notification>', '<system-reminder', '< / state >', 'user', 'state', '<div>',
  'Map<user, x>', '<users>',
)
const harmless = fc.string({ unit: 'binary', maxLength: 6 })
const text = fc.array(fc.oneof(dangerous, harmless), { maxLength: 8 }).map(pieces => pieces.join(''))
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,8}$/)
const json: fc.Arbitrary<JSONValue> = fc.jsonValue({ maxDepth: 2 }).map(value => JSON.parse(JSON.stringify(value)) as JSONValue)
const attributes = fc.dictionary(name, fc.oneof(text, fc.integer(), fc.double(), fc.boolean(), json), { maxKeys: 4 })
  .filter(values => Object.values(values).every(value => typeof value !== 'number' || Number.isFinite(value)))
const options = fc.option(fc.constant({ anthropic: { cacheControl: { type: 'ephemeral' } } }), { nil: undefined })
const part = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('text' as const), text, providerOptions: options }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('file' as const),
      data: fc.oneof(fc.uint8Array({ maxLength: 9 }), fc.webUrl(), fc.webUrl().map(url => new URL(url))),
      mediaType: fc.constantFrom('image/png', 'application/pdf'),
      filename: fc.option(text, { nil: undefined }),
      providerOptions: options,
    }),
  },
)
const signal: fc.Arbitrary<Signal> = fc
  .record({
    type: fc.constantFrom('user', 'state', 'reactive', 'notification', 'user-message', 'system-reminder'),
    tagName: fc.option(name, { nil: undefined }),
    contents: fc.oneof(text, fc.array(part, { maxLength: 4 })),
    attributes: fc.option(attributes, { nil: undefined }),
    metadata: fc.option(fc.dictionary(fc.string(), json, { maxKeys: 3 }), { nil: undefined }),
    providerOptions: options,
  } satisfies { [Field in keyof SignalInput]: fc.Arbitrary<SignalInput[Field]> })
  .map(input => normalizeSignal(input, { id: 's1', now: 1_770_000_000_000 }))

interface Element { tag: string; attributes: Array<[string, string]>; text: string }

/** Reads exactly one element without children; throws for everything else. */
function parse(xml: string): Element {
  const match = /^<([A-Za-z_][\w.-]*)((?: [A-Za-z_][\w.-]*="[^"<>\n]*")*)(?: \/>|>([^<>]*)<\/([A-Za-z_][\w.-]*)>)$/.exec(xml)
  if (!match) throw new Error(`Not one element: ${xml}`)
  const [, tag = '', written = '', inner = '', closing] = match
  if (closing !== undefined && closing !== tag) throw new Error(`<${tag}> is closed by </${closing}>`)
  const pairs = [...written.matchAll(/ ([^=]+)="([^"]*)"/g)]
  return { tag, attributes: pairs.map(([, key = '', value = '']) => [key, unescape(value)]), text: unescape(inner) }
}

function unescape(escaped: string): string {
  const characters: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"' }
  return escaped.replace(/&(?:#(\d+)|(\w+));/g, (_, code?: string, entity?: string) => {
    if (code !== undefined) return String.fromCodePoint(Number(code))
    return characters[entity ?? ''] ?? fail(`Unknown entity ${entity}`)
  })
}

function fail(message: string): never {
  throw new Error(message)
}

/** What XML 1.0 can hold of a value, character by character. */
function writable(value: string): string {
  return Array.from(value, character => {
    const code = character.codePointAt(0) ?? 0
    const blank = code === 0x9 || code === 0xa || code === 0xd
    const printed = (code >= 0x20 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000
    return blank || printed ? character : '\uFFFD'
  }).join('')
}

/** A second opinion on what reads like a reserved tag, by reading on as a parser of XML or HTML does. */
function opensOrClosesReserved(value: string): boolean {
  const pieces = value.split('<')
  return pieces.slice(1).some((piece, index) => {
    const after = [piece, ...pieces.slice(index + 2)].join('<')
    // Code: a component or type, and the argument of a type.
    if (/^(?:User|State|Notification)[\s/>]/.test(after) || (/[\w$]$/.test(pieces[index] ?? '') && /^(?:user|state|notification)>/i.test(after))) return false
    const shown = after.replace(/[\u200B\u0000]/g, '').replace(/^\//, '').toLowerCase()
    return RESERVED_TAGS.some(tag => shown.startsWith(tag) && endsTag(shown.slice(tag.length)))
  })
}

/** Reads attributes up to the end of the tag. */
function endsTag(written: string): boolean {
  let rest = written
  if (!/^[\s/>]/.test(rest)) return false
  for (;;) {
    rest = rest.trimStart()
    if (rest.startsWith('>') || rest.startsWith('/>')) return true
    const attribute = /^[a-z_:][\w:.-]*/.exec(rest)
    if (!attribute) return false
    rest = rest.slice(attribute[0].length)
    const quoted = /^\s*=\s*(["'])/.exec(rest)
    if (quoted) {
      const end = rest.indexOf(quoted[1] ?? '', quoted[0].length)
      if (end < 0) return false
      rest = rest.slice(end + 1)
    } else rest = rest.replace(/^\s*=\s*[^\s"'=<>`]+/, '')
  }
}

/** True when a reserved name follows a bracket, with anything but letters in between. */
function namesReserved(value: string): boolean {
  return value.split('<').slice(1).some(after => {
    const letters = after.replace(/[^a-z-]/gi, '').toLowerCase()
    return RESERVED_TAGS.some(tag => letters.startsWith(tag))
  })
}

const textsOf = (contents: Signal['contents']) =>
  typeof contents === 'string' ? [contents] : contents.flatMap(item => (item.type === 'text' ? [item.text] : []))
const renderedTexts = (value: Signal) => renderSignal(value).content.flatMap(item => (item.type === 'text' ? [item.text] : []))
const wrapped = (value: Signal) =>
  value.type !== 'user' || value.tagName !== 'user' || value.attributes !== undefined || value.guarded === true

describe('rendering', () => {
  it('[P2.1] gives elements from which text and attributes are read back exactly, and which hold no other tag', () => {
    fc.assert(
      fc.property(signal.filter(wrapped), value => {
        const elements = renderedTexts(value).map(parse)
        expect(elements.every(({ tag }) => tag === value.tagName)).toBe(true)
        const expected = Object.entries(value.attributes ?? {}).map(([key, item]) => [key, writable(String(item))])
        expect(elements[0]?.attributes).toStrictEqual(expected)
        expect(elements.slice(1).every(element => element.attributes.length === 0)).toBe(true)
        const texts = elements.map(element => element.text)
        if (texts.length === 1) expect([textsOf(value.contents).join('\n'), textsOf(value.contents).join('')]).toContain(texts[0])
        else expect(texts).toStrictEqual(textsOf(value.contents).filter(item => item !== ''))
      }),
      { numRuns: 500 },
    )
  })

  it('[P2.2] never shows a model plain text with a reserved tag in it', () => {
    fc.assert(
      fc.property(signal, value => {
        const shown = renderedTexts(value)
        // An element that parses holds no bracket; what has none around it must not read like one.
        const plain = wrapped(value) ? shown.map(xml => parse(xml).tag) : shown.filter(plainText => plainText !== '<user />')
        expect([...plain, plain.join('')].filter(opensOrClosesReserved)).toStrictEqual([])
      }),
      { numRuns: 500 },
    )
  })

  it('[P2.3] leaves every other plain text as it is, byte for byte', () => {
    fc.assert(
      fc.property(text.filter(value => value !== '' && !namesReserved(value)), value => {
        const plain = normalizeSignal({ type: 'user', contents: value }, { id: 's1', now: 0 })
        expect(renderSignal(plain).content).toStrictEqual([{ type: 'text', text: value }])
      }),
      { numRuns: 500 },
    )
  })

  it('[P2.3] leaves comparisons with things of a reserved name as they are', () => {
    const operand = fc.constantFrom('user', 'state', 'notification', 'a', 'i', 'x.y', '10', 'f(x)', 'users', 'state.count', 'user[0]', '(a + b)', '/user/.exec(s)')
    const comparison = fc.constantFrom(' < ', ' <= ', ' > ', ' >= ', ' << ', ' == ', ' !== ', ' <=> ')
    const joint = fc.constantFrom(' && ', ' || ', ' ? 1 : 2; ', ' + ', ' / 2; ', ' and ', ' OR ', ') {\n', '; ', ', ', '\nAND ', ' | ', ' }; ', ' % ')
    const fragment = fc.tuple(operand, comparison, operand, joint).map(pieces => pieces.join(''))
    fc.assert(
      fc.property(fc.array(fragment, { minLength: 1, maxLength: 6 }), fragments => {
        expect(needsGuard(`if (${fragments.join('')}end`)).toBe(false)
      }),
      { numRuns: 1000 },
    )
  })

  it('[P2.2] guards every text in which a parser finds a reserved tag, whatever stands around it', () => {
    const reserved = fc.constantFrom(...RESERVED_TAGS)
    const blank = fc.constantFrom(' ', '\n', '\t', '  ')
    const value = fc.oneof(text.map(item => `"${item.replaceAll('"', '')}"`), text.map(item => `'${item.replaceAll("'", '')}'`), fc.stringMatching(/^[a-z0-9&;?.]{1,5}$/))
    const attribute = fc.tuple(blank, name, fc.option(fc.tuple(fc.constantFrom('=', ' = '), value).map(pair => pair.join('')), { nil: '' })).map(pieces => pieces.join(''))
    const opening = fc.tuple(fc.constantFrom('<', '</'), reserved, fc.array(attribute, { maxLength: 3 }), fc.constantFrom('>', ' >', '/>', ' />', '\n>')).map(([start, tag, attributes, end]) => start + tag + attributes.join('') + end)
    // Directly behind an identifier it may be the argument of a type.
    const around = text.map(item => `${item} `)
    fc.assert(fc.property(around, opening, text, (before, tag, after) => {
      expect(needsGuard(before + tag + after)).toBe(true)
    }), { numRuns: 1000 })
  })

  it('keeps files where they were among the texts', () => {
    fc.assert(
      fc.property(signal, value => {
        if (typeof value.contents === 'string') return
        const files = value.contents.flatMap(item => (item.type === 'file' ? [item.mediaType] : []))
        expect(renderSignal(value).content.flatMap(item => (item.type === 'file' ? [item.mediaType] : []))).toStrictEqual(files)
      }),
    )
  })
})

describe('storing', () => {
  it('gives back an equal signal, and the same bytes for the model', () => {
    fc.assert(
      fc.property(signal, value => {
        const row = signalToRow(value, { threadId: 't1', resourceId: 'r1' })
        const loaded = { ...row, content: JSON.parse(JSON.stringify(row.content)) as typeof row.content }
        const read = rowToSignal(loaded)
        expect(read).toStrictEqual(value)
        expect(JSON.stringify(renderSignal(read))).toBe(JSON.stringify(renderSignal(value)))
      }),
      { numRuns: 500 },
    )
  })

  it('sends an accepted signal through validation unchanged', () => {
    fc.assert(
      fc.property(signal, value => {
        expect(normalizeSignal(value, { id: 'other', now: new Date(value.createdAt) })).toStrictEqual(value)
      }),
    )
  })
})
