import { partsOf } from './contents.ts'
import type { StoredContents } from './signal.ts'

/** The tags that Heed itself writes into a prompt. */
export const RESERVED_TAGS: readonly string[] = [
  'user', 'state', 'notification', 'notification-summary', 'system-reminder', 'working-memory', 'recalled-messages',
]

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
  const tags = tagPattern(reserved)
  const imitates = (text: string) => {
    return [...text.matchAll(tags)].some(match => continuesAsTag(match, text) && !isCode(match, text, reserved))
  }
  // Providers join parts in different ways, and a model may read an invisible character as a blank or ignore it: both are checked.
  const joined = texts.length > 1 ? [texts.join(''), texts.join('\n')] : texts
  return joined.some(text => {
    return imitates(text.replace(invisible, '')) || imitates(text.replace(invisible, ' ')) || looksLikeTag(text, reserved)
  })
}

/** True for a text with `<`, or with a character that looks like it. */
export function mayHaveTag(text: string): boolean {
  return openings.test(text)
}

const openings = /[<\uFF1C\uFE64\u02C2\u1438]/

/** What stands where a tag has its name, also with invisible characters around it. */
const candidates = new RegExp(
  `(${openings.source})([\\s/\\p{Cc}\\p{Cf}\\p{Default_Ignorable_Code_Point}\\u2800]*)` +
    '([^\\s/<>\\uFF1C\\uFE64\\uFF1E\\uFE65\\u02C3\\u1433]{1,80})',
  'gu',
)

/** True for a tag that is written with look-alikes: no language has such an identifier. */
function looksLikeTag(text: string, reserved: readonly string[]): boolean {
  for (const [, opening = '', , name = ''] of text.matchAll(candidates)) {
    if ((opening !== '<' || !isASCII(name)) && isReserved(name, reserved)) return true
  }
  return false
}

function isASCII(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text)
}

function isReserved(name: string, reserved: readonly string[]): boolean {
  // A soft hyphen is shown as a hyphen or not at all.
  const folded = [fold(name), fold(name.replaceAll('\u00AD', '-'))]
  return reserved.some(tag => folded.includes(tag.toLowerCase()))
}

/** A name as it looks: compatibility forms, accents, hyphens and letters of other scripts become those of ASCII. */
function fold(name: string): string {
  const plain = name.replace(invisible, '').normalize('NFKD').replace(/\p{M}/gu, '').replace(/[\p{Pd}\u2212\u02D7]/gu, '-').toLowerCase()
  return Array.from(plain, character => lookAlikes.get(character) ?? character).join('')
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
  return text.replace(candidates, (whole: string, opening: string, between: string, name: string) => {
    return isReserved(name, reserved) ? `${entities.get(opening) ?? opening}${between}${name}` : whole
  })
}

// Control and format characters, other characters without a glyph, the empty Braille cell; but not tabs and line breaks.
const invisible = /(?![\t-\r])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

// The slash is optional together with the blanks before it: a long run of blanks is then matched twice, not once for each blank.
function tagPattern(tags: readonly string[]): RegExp {
  const names = tags.filter(isXMLName).map(tag => tag.replaceAll('.', '\\.'))
  return new RegExp(`<(?:\\s*/)?\\s*(${names.join('|') || '(?!)'})(?=[\\s/>]|$)`, 'giu')
}

/** The text after the name of a tag: its end, or its first attribute. */
const tagContinues = /[\s/]*(?:$|[>"'={\p{L}_:@])/uy

/** Attributes with their values, and the end of the tag. */
const closedTag = /(?:\s+[\p{L}_:@][\p{L}\p{N}_:@.-]*\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))*\s*\/?\s*>/uy

/** No parser reads `<` and a blank as a tag, and in code it is a comparison: there the whole tag has to match. */
function continuesAsTag(match: RegExpExecArray, text: string): boolean {
  const [tag] = match
  const rest = /\s/.test(tag) ? closedTag : tagContinues
  rest.lastIndex = match.index + tag.length
  return rest.test(text)
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
