import { partsOf } from './contents.ts'
import type { Signal, StoredContents } from './signal.ts'

/** The tags that Heed itself writes into a prompt. */
export const RESERVED_TAGS: readonly string[] = [
  'user', 'state', 'notification', 'notification-summary', 'system-reminder', 'working-memory', 'recalled-messages', 'watch',
]

/** True for input that the model receives as an ordinary user message: without an element, its text unchanged. */
export function isPlain(signal: Pick<Signal, 'type' | 'tagName' | 'attributes'>): boolean {
  return signal.type === 'user' && signal.tagName === 'user' && Object.keys(signal.attributes ?? {}).length === 0
}

/**
 * True for contents that a model might read as one of the `reserved` tags, opening or closing. Invisible characters before the name or
 * inside it are ignored, and a tag may be spread over several parts. Code is not an imitation: a comparison (`a < user && b`), a type or
 * component that begins with a capital letter (`<User />`), a type argument (`Array<user>`). A tag with blanks around it is one:
 * `vector <state> v`. A name with letters or hyphens that look like those of a tag, and a tag that is not closed at the end, are
 * imitations.
 */
export function needsGuard(contents: StoredContents, reserved: readonly string[] = RESERVED_TAGS): boolean {
  if (typeof contents === 'string' && !mayHaveTag(contents)) return false
  const texts = partsOf(contents).flatMap(part => (part.type === 'text' ? [part.text] : []))
  if (!texts.some(mayHaveTag)) return false
  // Providers join parts in different ways.
  const joined = texts.length > 1 ? [texts.join(''), texts.join('\n')] : texts
  return joined.some(text => hasTag(text, reserved))
}

/** True for a text with `<`, or with a character that looks like it. */
export function mayHaveTag(text: string): boolean {
  return openings.test(text)
}

const openings = /[<\uFF1C\uFE64\u02C2\u1438]/

/** No code has so many names of reserved tags: such a text is not looked at further. */
const maxNames = 300

function hasTag(text: string, reserved: readonly string[]): boolean {
  let names = 0
  for (const found of reservedNames(text, reserved)) {
    // No language has an identifier with look-alikes.
    if (++names > maxNames || text[found.at] !== '<' || !isASCII(found.name) || isTag(text, found, reserved)) return true
  }
  return false
}

/** How much is read of a text around a name. */
const before = 64
const after = 4_096

/** Whether a model reads a tag at this place. It may read an invisible character as a blank or ignore it: both are checked. */
function isTag(text: string, { at, end: endOfName }: FoundName, reserved: readonly string[]): boolean {
  const end = endOfName + after
  const parts = [text.slice(Math.max(0, at - before), at), text.slice(at, end)] as const
  const tags = tagPattern(reserved)
  return (parts.some(part => invisible.test(part)) ? ['', ' '] : ['']).some(blank => {
    const [start, rest] = parts.map(part => part.replaceAll(allInvisible, blank)) as [string, string]
    const read = start + rest
    tags.lastIndex = start.length
    const match = tags.exec(read)
    return match !== null && continuesAsTag(match, read, end < text.length) && !isCode(match, read, reserved)
  })
}

interface FoundName {
  /** The index of the character that opens the tag. */
  at: number
  /** As it is written. */
  name: string
  /** The index after the name. */
  end: number
}

/** The places at which a text has the name of a reserved tag where a tag has its name. Reads each character a few times at most. */
function* reservedNames(text: string, reserved: readonly string[]): Generator<FoundName, void> {
  const names = namesOf(reserved)
  for (let at = 0; at < text.length; at++) {
    if (!isOpening(text.charCodeAt(at)) || names.isNone[text.charCodeAt(at + 1)] === 1) continue
    let start = at + 1
    let name: NameTree | undefined = names
    for (let index = start; name;) {
      const code = text.codePointAt(index)
      const character = code === undefined ? endOfName : foldedOf(code)
      if (name.isName && (character === endOfName || character === unseen)) yield { at, name: text.slice(start, index), end: index }
      if (code === undefined) break
      index += code > 0xffff ? 2 : 1
      if (name === names && (character === unseen || isBlank(code))) start = index
      else if (character === endOfName) break
      // A soft hyphen is shown as a hyphen or not at all.
      else if (code === 0xad) name = name.next.get('-') ?? name
      else for (let letter = 0; letter < character.length; letter++) name = name?.next.get(character[letter] ?? '')
    }
  }
}

/** The names that go on from a beginning, by their next letter. */
interface NameTree {
  next: Map<string, NameTree>
  isName: boolean
}

interface Names extends NameTree {
  /** By its code, 1 for an ASCII character that is neither the first of a name nor before one. */
  isNone: Uint8Array
}

const knownNames = new WeakMap<readonly string[], Names>()

function namesOf(reserved: readonly string[]): Names {
  let known = knownNames.get(reserved)
  if (!known) knownNames.set(reserved, known = treeOf(reserved.map(tag => tag.toLowerCase())))
  return known
}

function treeOf(names: readonly string[]): Names {
  const tree: Names = { next: new Map(), isName: false, isNone: new Uint8Array(128) }
  for (const name of names) {
    let node: NameTree = tree
    for (const letter of name) {
      const next = node.next.get(letter) ?? { next: new Map<string, NameTree>(), isName: false }
      node.next.set(letter, next)
      node = next
    }
    node.isName = name !== ''
  }
  for (let code = 0; code < 128; code++) {
    const character = foldedOf(code)
    tree.isNone[code] = isBlank(code) || character === unseen || tree.next.has(character) ? 0 : 1
  }
  return tree
}

function isOpening(code: number): boolean {
  return code === 0x3c || (code >= 0x2c2 && (code === 0xff1c || code === 0xfe64 || code === 0x2c2 || code === 0x1438))
}

/** What may stand between the opening of a tag and its name, besides what is not seen. */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x2f || (code >= 0x09 && code <= 0x0d) || (code > 0x7f && /\s/.test(String.fromCodePoint(code)))
}

/** In place of a folded character: the end of a name; a character that is not seen. */
const endOfName = '\0'
const unseen = ''

/** Characters as they look, by code point: of the first two planes of Unicode, the others have no letters of tags. */
const foldedCharacters: string[][] = [[], []]

function foldedOf(code: number): string {
  const plane = foldedCharacters[code >> 16]
  if (!plane) return code >= 0xe0000 && code < 0xe1000 ? unseen : endOfName
  return (plane[code & 0xffff] ??= folded(String.fromCodePoint(code)))
}

function folded(character: string): string {
  if (/[\s/<>\uFF1C\uFE64\uFF1E\uFE65\u02C3\u1433]/.test(character)) return endOfName
  return fold(character)
}

function isASCII(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text)
}

/** A character as it looks: compatibility forms, accents, hyphens and letters of other scripts become those of ASCII. */
function fold(character: string): string {
  const seen = character.replace(allInvisible, '').normalize('NFKD').replace(/\p{M}/gu, '')
  const plain = seen.replace(/[\p{Pd}\u2212\u02D7]/gu, '-').toLowerCase()
  return Array.from(plain, one => lookAlikes.get(one) ?? one).join('')
}

const lookAlikes: ReadonlyMap<string, string> = new Map(
  Object.entries({
    a: 'аαɑᴀ', b: 'ьʙ', c: 'сϲᴄ', d: 'ԁᴅ', e: 'еєҽᴇ', f: 'ſϝ', g: 'ɡԍɢ', h: 'һʜ', i: 'іιıɩɪ', j: 'јᴊ', k: 'кκᴋ', l: 'ӏⅼʟ|',
    m: 'мᴍ', n: 'пոηɴ', o: 'оοօᴏ', p: 'рρᴘ', q: 'ԛ', r: 'гʀ', s: 'ѕꜱ', t: 'тτᴛ', u: 'υսᴜц', v: 'νѵᴠ', w: 'ԝωᴡ', x: 'хχ', y: 'уүγʏ', z: 'ᴢ',
  }).flatMap(([letter, others]) => Array.from(others, other => [other, letter] as const)),
)

/** The same text in which no reserved tag can be read. All other characters stay: results of tools may be code. */
export function escapeReservedTags(text: string, reserved: readonly string[]): string {
  if (!needsGuard(text, reserved)) return text
  const pieces: string[] = []
  let from = 0
  for (const { at } of reservedNames(text, reserved)) {
    // A place has two names where one begins with the other.
    if (at < from) continue
    const opening = text[at] ?? ''
    pieces.push(text.slice(from, at), entities.get(opening) ?? opening)
    from = at + 1
  }
  return pieces.join('') + text.slice(from)
}

// Control and format characters, other characters without a glyph, the empty Braille cell; but not tabs and line breaks.
const invisible = /(?![\t-\r])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u
const allInvisible = new RegExp(invisible, 'gu')

// The slash is optional together with the blanks before it: a long run of blanks is then matched twice, not once for each blank.
function tagPattern(tags: readonly string[]): RegExp {
  const names = tags.filter(isXMLName).map(tag => tag.replaceAll('.', '\\.'))
  return new RegExp(`<(?:\\s*/)?\\s*(${names.join('|') || '(?!)'})(?=[\\s/>]|$)`, 'iuy')
}

/** The text after the name of a tag: its end, or its first attribute. */
const tagContinues = /[\s/]*(?:$|[>"'={\p{L}_:@])/uy

const attributeName = '\\s+[\\p{L}_:@][\\p{L}\\p{N}_:@.-]*'
const attributes = `(?:${attributeName}\\s*=\\s*(?:"[^"]*"|'[^']*'|[^\\s"'=<>\`]+))*`

/** Attributes with their values, and the end of the tag. */
const closedTag = new RegExp(`${attributes}\\s*(?:/\\s*)?>`, 'uy')

/** The same up to the end of what is read of a text. */
const cutTag = new RegExp(`${attributes}(?:${attributeName}(?:\\s*=\\s*(?:"[^"]*|'[^']*|[^\\s"'=<>\`]*))?)?\\s*$`, 'uy')

/**
 * No parser reads `<` and a blank as a tag, and in code it is a comparison: there the whole tag has to match. `isCut`: the text goes on,
 * and what is not read of it may be the rest of a tag.
 */
function continuesAsTag(match: RegExpExecArray, text: string, isCut: boolean): boolean {
  const [tag] = match
  const rests = /\s/.test(tag) ? (isCut ? [closedTag, cutTag] : [closedTag]) : [tagContinues]
  return rests.some(rest => {
    rest.lastIndex = match.index + tag.length
    return rest.test(text)
  })
}

/**
 * A name of letters only may be an identifier; one with a hyphen or a dot is none in any language. Before the tag only ASCII counts as
 * code: `名<user>` is a sentence with a tag.
 */
function isCode(match: RegExpExecArray, text: string, reserved: readonly string[]): boolean {
  const [tag, name = ''] = match
  if (!/^\p{L}+$/u.test(name)) return false
  const isType = /^\p{Lu}\p{Ll}+$/u.test(name) && !reserved.includes(name)
  if (isType) return true
  const before = text.slice(Math.max(0, match.index - 20), match.index)
  const after = text.slice(match.index + tag.length, match.index + tag.length + 40)
  const isClosed = (tag === `<${name}` && after.startsWith('>')) || (tag === `< ${name}` && after.startsWith(' >'))
  const isArgument = /[\w$]$/.test(before) && isClosed
  return isArgument || (/\btemplate\s?$/.test(before) && /^ \w+>/.test(after))
}

/** True for a text that can be written as a tag or an attribute name without escaping. */
export function isXMLName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)
}

/** Text inside an element. The result can neither end the element nor begin another. */
export function escapeText(text: string): string {
  return text.replace(/[&<>\uFF1C\uFE64\u02C2\u1438\uFF1E\uFE65\u02C3\u1433]/g, character => entities.get(character) ?? character)
}

/** A value between double quotes, on one line. The result can't end the value. Characters that XML 1.0 forbids become U+FFFD. */
export function escapeAttribute(value: string): string {
  return value.replace(/[&<>"\uFF1C\uFE64\u02C2\u1438\uFF1E\uFE65\u02C3\u1433\p{Cc}\p{Cs}\u2028\u2029\uFFFE\uFFFF]/gu, character => {
    return entities.get(character) ?? characterReference(character.codePointAt(0) ?? 0)
  })
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  // They look like the brackets of a tag.
  ...Array.from('\uFF1C\uFE64\u02C2\u1438\uFF1E\uFE65\u02C3\u1433', character => [character, `&#${character.codePointAt(0)};`] as const),
])

function characterReference(code: number): string {
  const blank = code === 0x09 || code === 0x0a || code === 0x0d
  const isAllowed = blank || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029
  return isAllowed ? `&#${code};` : '\uFFFD'
}
