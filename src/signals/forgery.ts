import { partsOf } from './contents.ts'
import { isXMLName } from './kinds.ts'
import type { StoredContents } from './signal.ts'

/** The tags that Heed itself writes into a prompt. */
export const RESERVED_TAGS: readonly string[] = ['user', 'state', 'notification', 'notification-summary', 'system-reminder', 'working-memory', 'recalled-messages']

/**
 * True for contents that a model might take for one of the `reserved` tags, opened or closed. Characters that nobody sees hide
 * nothing, neither before the name nor inside it, and a tag may be spread over several parts. Code is no imitation: a bracket that follows
 * a name opens no tag (`Array<User>`), and a name with small letters after a capital one is a type or a component (`<User />`), which we never write.
 */
export function needsGuard(contents: StoredContents, reserved: readonly string[] = RESERVED_TAGS): boolean {
  const texts = partsOf(contents).flatMap(part => (part.type === 'text' ? [part.text] : []))
  if (!texts.some(text => text.includes('<'))) return false
  const tags = tagPattern(reserved)
  // How a provider joins parts, and whether a model takes an invisible character for a blank or for nothing, is not ours to know.
  const joined = texts.length > 1 ? [texts.join(''), texts.join('\n')] : texts
  return joined.some(text => tags.test(text.replace(invisible, '')) || tags.test(text.replace(invisible, ' ')))
}

// Control and format characters, whatever else Unicode leaves without a glyph, the empty Braille cell; but not the usual blanks.
const invisible = /(?![\t-\r])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

// The slash is optional together with the blanks before it: a long run of blanks is then read twice, not once for each of them.
function tagPattern(tags: readonly string[]): RegExp {
  const names = tags.filter(isXMLName).flatMap(tag => [...new Set([tag, tag.toUpperCase()])]).map(name => name.replaceAll('.', '\\.'))
  return new RegExp(`(?<![\\p{ID_Continue}$])<(?:\\s*/)?\\s*(?:${names.join('|') || '(?!)'})(?=[\\s/>])`, 'u')
}
