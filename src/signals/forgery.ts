import { partsOf } from './contents.ts'
import { isXMLName } from './kinds.ts'
import type { StoredContents } from './signal.ts'

/** The tags that Heed itself writes into a prompt. */
export const RESERVED_TAGS: readonly string[] = ['user', 'state', 'notification', 'notification-summary', 'system-reminder', 'working-memory', 'recalled-messages']

/**
 * True for contents that a model might take for one of the `reserved` tags, opened or closed. Characters that nobody sees hide
 * nothing, neither before the name nor inside it, and a tag may be spread over several parts. Code is left alone where it is no imitation:
 * a comparison (`a < user && b`), a type or component that begins with a capital letter (`<User />`), and an argument of a type
 * (`Array<user>`). What stands alone like a tag, `vector <state> v`, is one.
 */
export function needsGuard(contents: StoredContents, reserved: readonly string[] = RESERVED_TAGS): boolean {
  if (typeof contents === 'string' && !contents.includes('<')) return false
  const texts = partsOf(contents).flatMap(part => (part.type === 'text' ? [part.text] : []))
  if (!texts.some(text => text.includes('<'))) return false
  const tags = tagPattern(reserved)
  const imitates = (text: string) => [...text.matchAll(tags)].some(match => goesOnAsTag(match, text) && !isCode(match, text, reserved))
  // How a provider joins parts, and whether a model takes an invisible character for a blank or for nothing, is not ours to know.
  const joined = texts.length > 1 ? [texts.join(''), texts.join('\n')] : texts
  return joined.some(text => imitates(text.replace(invisible, '')) || imitates(text.replace(invisible, ' ')))
}

// Control and format characters, whatever else Unicode leaves without a glyph, the empty Braille cell; but not the usual blanks.
const invisible = /(?![\t-\r])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

// The slash is optional together with the blanks before it: a long run of blanks is then read twice, not once for each of them.
function tagPattern(tags: readonly string[]): RegExp {
  const names = tags.filter(isXMLName).map(tag => tag.replaceAll('.', '\\.'))
  return new RegExp(`<(?:\\s*/)?\\s*(${names.join('|') || '(?!)'})(?=[\\s/>])`, 'giu')
}

/** What may follow the name of a tag, closed or not: its end, or the first of its attributes. */
const tagGoesOn = /[\s/]*(?:$|[>"'={\p{L}_:@])/uy

/** Attributes with their values, and the end of the tag. */
const closedTag = /(?:\s+[\p{L}_:@][\p{L}\p{N}_:@.-]*\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))*\s*\/?\s*>/uy

/** No parser takes `<` and a blank for a tag, and in code it is a comparison: it has to be one to the end. */
function goesOnAsTag(match: RegExpExecArray, text: string): boolean {
  const [tag] = match
  const rest = /\s/.test(tag) ? closedTag : tagGoesOn
  rest.lastIndex = match.index + tag.length
  return rest.test(text)
}

/** A name of one word may be an identifier; no language has one with a hyphen or a dot. In front of it only ASCII counts: `名<user>` is a sentence with a tag. */
function isCode(match: RegExpExecArray, text: string, reserved: readonly string[]): boolean {
  const [tag, name = ''] = match
  if (!/^\p{L}+$/u.test(name)) return false
  const isType = /^\p{Lu}\p{Ll}+$/u.test(name) && !reserved.includes(name)
  if (isType) return true
  const before = text.slice(Math.max(0, match.index - 20), match.index)
  const after = text.slice(match.index + tag.length, match.index + tag.length + 40)
  const isArgument = /[\w$]$/.test(before) && ((tag === `<${name}` && after.startsWith('>')) || (tag === `< ${name}` && after.startsWith(' >')))
  return isArgument || (/\btemplate\s?$/.test(before) && /^ \w+>/.test(after))
}
