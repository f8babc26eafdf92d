/** Text inside an element: nothing in it can end the element or begin another. */
export function escapeText(text: string): string {
  return text.replace(/[&<>]/g, character => entities.get(character) ?? character)
}

/** A value between double quotes: on one line, and nothing in it can end the value. What XML 1.0 cannot write becomes U+FFFD. */
export function escapeAttribute(value: string): string {
  return value.replace(/[&<>"\p{Cc}\p{Cs}\u2028\u2029\uFFFE\uFFFF]/gu, character => {
    return entities.get(character) ?? reference(character.codePointAt(0) ?? 0)
  })
}

const entities: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
])

function reference(code: number): string {
  const blank = code === 0x09 || code === 0x0a || code === 0x0d
  const writable = blank || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029
  return writable ? `&#${code};` : '\uFFFD'
}
