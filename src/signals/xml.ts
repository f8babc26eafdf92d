/** True for a text that can be written as a tag or an attribute name without escaping. */
export function isXMLName(name: unknown): name is string {
  return typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)
}

/** Text inside an element. The result can neither end the element nor begin another. */
export function escapeText(text: string): string {
  return text.replace(/[&<>]/g, character => entities.get(character) ?? character)
}

/** A value between double quotes, on one line. The result can't end the value. Characters that XML 1.0 forbids become U+FFFD. */
export function escapeAttribute(value: string): string {
  return value.replace(/[&<>"\p{Cc}\p{Cs}\u2028\u2029\uFFFE\uFFFF]/gu, character => {
    return entities.get(character) ?? characterReference(character.codePointAt(0) ?? 0)
  })
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
])

function characterReference(code: number): string {
  const blank = code === 0x09 || code === 0x0a || code === 0x0d
  const isAllowed = blank || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029
  return isAllowed ? `&#${code};` : '\uFFFD'
}
