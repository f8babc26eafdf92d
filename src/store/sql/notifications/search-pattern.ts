/**
 * A pattern for GLOB that finds a text anywhere, whatever the case of its letters. LIKE knows the case of ASCII alone, and a folded copy
 * of every text would have to be written with it.
 */
export function searchPattern(search: string): string {
  return `*${Array.from(search, (sign) => oneOf(sign)).join('')}*`
}

function oneOf(sign: string): string {
  const forms = new Set([sign, ...[sign.toLowerCase(), sign.toUpperCase(), sign.toUpperCase().toLowerCase(), sign.toLowerCase().toUpperCase()].filter(isOne)])
  // A sigma at the end of a word.
  if (forms.has('Σ')) forms.add('ς')
  return forms.size > 1 || '*?['.includes(sign) ? `[${[...forms].join('')}]` : sign
}

function isOne(form: string): boolean {
  return Array.from(form).length === 1
}
