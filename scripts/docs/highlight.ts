/** A piece of code: its class in the style sheet, or none. */
interface Token {
  text: string
  kind?: 'comment' | 'string' | 'keyword' | 'number' | 'name'
}

interface Language {
  /** In the order in which they are tried. */
  patterns: ReadonlyArray<readonly [NonNullable<Token['kind']>, RegExp]>
  keywords: ReadonlySet<string>
}

const words = (list: string) => new Set(list.split(' '))
const quoted = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/
const number = /\b\d[\d_]*(?:\.\d+)?\b/
const name = /[A-Za-z_$][\w$]*/
const hash = /(?<![\w$])#.*/

const script: Language = {
  patterns: [['comment', /\/\*[\s\S]*?\*\/|\/\/.*/], ['string', new RegExp(`${quoted.source}|\`(?:[^\`\\\\]|\\\\.)*\``)], ['number', number], ['name', name]],
  keywords: words(
    'abstract as asserts async await break case catch class const continue declare default delete do else export extends false finally for from function get if '
      + 'implements import in infer instanceof interface is keyof let new null of private protected public readonly return satisfies set static super switch this '
      + 'throw true try type typeof undefined unique using var void while yield any boolean never number object string symbol unknown bigint',
  ),
}
const languages: Readonly<Record<string, Language>> = {
  ts: script, tsx: script, js: script, jsx: script,
  json: { patterns: [['string', quoted], ['number', number], ['name', name]], keywords: words('true false null') },
  sh: { patterns: [['comment', hash], ['string', quoted], ['name', name]], keywords: words('npm npx node cd export echo git curl docker kubectl psql') },
  yaml: { patterns: [['comment', hash], ['string', quoted], ['number', number], ['name', name]], keywords: words('true false null on') },
  dockerfile: { patterns: [['comment', hash], ['string', quoted], ['name', name]], keywords: words('FROM AS WORKDIR COPY RUN ENV USER EXPOSE CMD HEALTHCHECK VOLUME ARG') },
  nginx: { patterns: [['comment', hash], ['string', quoted], ['number', number], ['name', name]], keywords: words('server location listen proxy_pass upstream on off') },
  cedar: { patterns: [['comment', /\/\/.*/], ['string', quoted], ['name', name]], keywords: words('permit forbid when unless principal action resource context in is has like if then else true false') },
  sql: { patterns: [['comment', /--.*/], ['string', quoted], ['number', number], ['name', name]], keywords: words('select from where insert into values update set delete create table grant on to role with and or') },
}

/**
 * Code as HTML, with the classes of a style sheet. An unknown language is plain text. `link` may turn a name into an address.
 * The text of the result, without its tags, is the code.
 */
export function highlight(code: string, language: string, link: (name: string) => string | undefined = () => undefined): string {
  return tokens(code, languages[language]).map(({ text, kind }) => {
    const shown = escapeHTML(text)
    const address = kind === 'name' ? link(text) : undefined
    if (address !== undefined) return `<a href="${escapeHTML(address)}">${shown}</a>`
    return kind === undefined || (kind === 'name' && !/^[A-Z]/.test(text)) ? shown : `<span class="code-${kind}">${shown}</span>`
  }).join('')
}

/** Languages that have colors; others are shown as they are. */
export const isKnownLanguage = (language: string): boolean => Object.hasOwn(languages, language)

function tokens(code: string, language: Language | undefined): Token[] {
  if (!language) return [{ text: code }]
  const pattern = new RegExp(language.patterns.map(([kind, { source }]) => `(?<${kind}>${source})`).join('|'), 'g')
  const found: Token[] = []
  let end = 0
  for (const match of code.matchAll(pattern)) {
    if (match.index > end) found.push({ text: code.slice(end, match.index) })
    const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) as [NonNullable<Token['kind']>, string]
    found.push({ text: match[0], kind: kind === 'name' && language.keywords.has(match[0]) ? 'keyword' : kind })
    end = match.index + match[0].length
  }
  return end < code.length ? [...found, { text: code.slice(end) }] : found
}

/** Text for HTML, also within quoted attributes. */
export function escapeHTML(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
