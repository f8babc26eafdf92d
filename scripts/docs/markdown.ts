import { Marked, type Token, type Tokens } from 'marked'
import { escapeHTML, highlight } from './highlight.ts'
import { drawStates } from './state-diagram.ts'

/** A page in HTML, and what other pages and the search need of it. */
export interface RenderedPage {
  title: string
  html: string
  headings: Heading[]
  /** The page in pieces, one below each heading. */
  passages: Passage[]
  /** Targets of links as the page has them, without those to other hosts. */
  links: string[]
}

export interface Heading {
  depth: number
  text: string
  id: string
}

/** What is below one heading, as plain text: its sentences, then its code. A result of the search shows the beginning. */
export interface Passage {
  id: string
  heading: string
  text: string
}

export interface RenderOptions {
  /** The address on the site of a link or picture of this page. */
  address: (target: string) => string
  /** The address of the reference of a name; none where the name is not exported. */
  reference?: (name: string) => string | undefined
  /** Pages of the reference: types within signatures are links too. */
  isReference?: boolean
}

/** Renders a page. Its HTML has no scripts and nothing from other hosts; HTML of the page itself is shown as text. */
export function render(markdown: string, { address, reference = () => undefined, isReference = false }: RenderOptions): RenderedPage {
  const page: RenderedPage = { title: '', html: '', headings: [], passages: [], links: [] }
  const slug = slugger()
  const parser = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        const text = plain(tokens)
        const id = slug(text)
        page.headings.push({ depth, text, id })
        if (depth === 1 && page.title === '') page.title = text
        const link = depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to ${escapeHTML(text)}">#</a>`
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}${link}</h${depth}>\n`
      },
      code({ text, lang = '' }) {
        const [language = ''] = lang.split(/\s/)
        if (language === 'mermaid') return drawStates(text)
        const code = highlight(text, language, isReference && language === 'ts' ? reference : undefined)
        return `<pre tabindex="0"${language === '' ? '' : ` data-language="${escapeHTML(language)}"`}><code>${code}\n</code></pre>\n`
      },
      codespan({ text }) {
        if (isReference) return `<code>${highlight(text, 'ts', reference)}</code>`
        const target = reference(text.replace(/\(\)$/, ''))
        return target === undefined ? `<code>${escapeHTML(text)}</code>` : `<a href="${escapeHTML(target)}"><code>${escapeHTML(text)}</code></a>`
      },
      link({ href, tokens }) {
        // A link within a link is no HTML: names in its text stay plain.
        const text = this.parser.parseInline(tokens).replace(/<a [^>]*>(.*?)<\/a>/g, '$1')
        if (/^https?:/.test(href)) return `<a href="${escapeHTML(href)}" rel="noreferrer">${text}</a>`
        page.links.push(href)
        return `<a href="${escapeHTML(address(href))}">${text}</a>`
      },
      image({ href, text }) {
        page.links.push(href)
        return `<img src="${escapeHTML(address(href))}" alt="${escapeHTML(text)}" loading="lazy">`
      },
      html({ text }) {
        return /^\s*<!--/.test(text) ? '' : escapeHTML(text)
      },
      table(token) {
        const cell = (tag: string, { tokens }: Tokens.TableCell, scope = '') => `<${tag}${scope}>${this.parser.parseInline(tokens)}</${tag}>`
        const head = token.header.map((one) => cell('th', one, ' scope="col"')).join('')
        const rows = token.rows.map((row) => `<tr>${row.map((one) => cell('td', one)).join('')}</tr>`).join('\n')
        return `<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${head}</tr></thead><tbody>\n${rows}\n</tbody></table></div>\n`
      },
    },
  })
  const tokens = parser.lexer(markdown)
  page.html = parser.parser(tokens)
  page.passages = passagesOf(tokens, page.headings)
  return page
}

/** Ids of headings, as GitHub gives them: a second heading of the same text gets a number. */
export function slugger(): (text: string) => string {
  const used = new Map<string, number>()
  return (text) => {
    const base = text.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-')
    const count = used.get(base) ?? 0
    used.set(base, count + 1)
    return count === 0 ? base : `${base}-${count}`
  }
}

function passagesOf(tokens: readonly Token[], headings: readonly Heading[]): Passage[] {
  const passages: Array<{ heading: Heading; sentences: string[]; code: string[] }> = []
  let next = 0
  for (const token of tokens) {
    const isDrawing = token.type === 'code' && token.lang === 'mermaid'
    if (token.type === 'heading') {
      const heading = headings[next++]
      if (heading) passages.push({ heading, sentences: [], code: [] })
    } else if (token.type !== 'html' && token.type !== 'space' && !isDrawing) passages.at(-1)?.[token.type === 'code' ? 'code' : 'sentences'].push(plain([token]))
  }
  return passages.map(({ heading, sentences, code }) => ({ id: heading.id, heading: heading.text, text: [...sentences, ...code].join(' ') }))
}

/** The text of tokens without its marks. */
function plain(tokens: readonly Token[]): string {
  return tokens.map((token) => {
    if (token.type === 'table') return [token.header, ...token.rows].map((row: Tokens.TableCell[]) => row.map((cell) => plain(cell.tokens)).join(' ')).join(' ')
    if (token.type === 'list') return (token.items as Tokens.ListItem[]).map((item) => plain(item.tokens)).join(' ')
    if (token.type === 'image') return (token as Tokens.Image).text
    if ('tokens' in token && token.tokens) return plain(token.tokens)
    return token.type === 'html' ? '' : 'text' in token ? unescape((token as { text: string }).text) : ''
  }).join('')
}

/** marked leaves entities in texts. */
function unescape(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[name] ?? '')
}
