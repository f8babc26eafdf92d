import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { entriesOf } from '../checks/entries.ts'
import { indexOf } from './assets/search.js'
import { layout, type MenuGroup } from './layout.ts'
import { llmsFullText, llmsText, withoutComments, type TextPage } from './llms.ts'
import { render, type RenderedPage } from './markdown.ts'
import { docsPages, navigationProblems, sectionsOf, type Section } from './navigation.ts'
import { referenceOf, type Reference } from './reference.ts'

/** The documentation as texts: what the site, the package and the checks are made of. */
export interface Documentation {
  sections: Section[]
  pages: TextPage[]
  about: string
  reference?: Reference
}

export interface BuiltSite {
  /** Files of the site. */
  files: number
  /** Links that lead nowhere, pages that no link leads to, and what else is wrong. */
  problems: string[]
}

/** Pages besides docs/ that the site has. Other files that pages link to are shown as code, or copied. */
const papers = ['README.md', 'PROTOCOL.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']
const assets = join(import.meta.dirname, 'assets')

/** Reads the pages. With `types`, a folder of emitted declarations, the reference of the API is among them, as `docs/api/…`. */
export function readDocumentation(root: string, types?: string): Documentation {
  const examples = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts')).toSorted()
  const results = readdirSync(join(root, 'bench/results')).filter((name) => name.endsWith('.md')).map((name) => `bench/results/${name}`)
  const pages: TextPage[] = [...papers, ...docsPages(root), ...results].map((path) => pageOf(path, readFileSync(join(root, path), 'utf8')))
  for (const name of examples) {
    const code = readFileSync(join(root, 'examples', name), 'utf8')
    pages.push({ path: `examples/${name}`, title: name, markdown: `# examples/${name}\n\n\`\`\`ts\n${code}\`\`\`\n` })
  }
  const list = examples.map((name) => `- [${name}](${name})`).join('\n')
  pages.push({ path: 'examples', title: 'Examples', markdown: `# Examples\n\nPrograms that run without a key: \`node examples/quickstart.ts\`.\n\n${list.replaceAll('](', '](examples/')}\n` })
  const sections = sectionsOf(root)
  const reference = types === undefined ? undefined : referenceOf(types, entriesOf(root))
  if (reference) {
    for (const { name, title, markdown } of reference.pages) pages.push({ path: `docs/api/${name}.md`, title, markdown })
    const listed = reference.pages.map(({ name, about }) => ({ path: `docs/api/${name}.md`, about }))
    sections.push({ title: 'API reference', pages: listed })
  }
  const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { description: string }
  return { sections, pages, about: description, ...(reference ? { reference } : {}) }
}

function pageOf(path: string, markdown: string): TextPage {
  const title = /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll('`', '')
  if (title === undefined) throw new Error(`${path} has no title: its first line has to be "# …".`)
  return { path, title, markdown }
}

/** Where a page of the repository is on the site. */
function addressOf(path: string): string {
  if (path === 'README.md') return 'index.html'
  return path === 'examples' ? 'examples/index.html' : `${path.replace(/\.(md|ts)$/, '')}.html`
}

/** Writes the site: static pages, their styles and scripts, the index of the search, `llms.txt` and each page as Markdown. */
export function buildSite(root: string, out: string, documentation: Documentation): BuiltSite {
  const site = new Site(root, out, documentation)
  return site.write()
}

class Site {
  readonly #root: string
  readonly #out: string
  readonly #documentation: Documentation
  readonly #addresses: Map<string, string>
  readonly #problems: string[]
  readonly #copied = new Set<string>()
  #files = 0

  constructor(root: string, out: string, documentation: Documentation) {
    this.#root = root
    this.#out = out
    this.#documentation = documentation
    this.#addresses = new Map(documentation.pages.map(({ path }) => [path, addressOf(path)]))
    this.#problems = navigationProblems(root)
  }

  write(): BuiltSite {
    rmSync(this.#out, { recursive: true, force: true })
    const { pages, sections, about } = this.#documentation
    const rendered = new Map(pages.map((page) => [page.path, this.#render(page)]))
    const menu = this.#menu()
    for (const [path, page] of rendered) this.#write(addressOf(path), layout(addressOf(path), page, menu))
    for (const { path, markdown } of pages) if (path.endsWith('.md')) this.#write(path, withoutComments(markdown))
    this.#write('llms.txt', llmsText(about, sections, pages))
    this.#write('llms-full.txt', llmsFullText(about, fullTextPages(pages)))
    this.#writeAssets(rendered)
    for (const path of this.#copied) {
      mkdirSync(dirname(join(this.#out, path)), { recursive: true })
      cpSync(join(this.#root, path), join(this.#out, path))
      this.#files++
    }
    this.#checkLinks(rendered, menu)
    return { files: this.#files, problems: this.#problems }
  }

  #render({ path, markdown }: TextPage): RenderedPage {
    const here = addressOf(path)
    const places = this.#documentation.reference?.places
    const reference = (name: string) => {
      const place = places?.get(name)
      return place && this.#relative(here, `docs/api/${place.page}.html`, place.anchor)
    }
    return render(markdown, {
      address: (target) => this.#address(path, target),
      isReference: path.startsWith('docs/api/'),
      // Examples and papers keep their code as it is.
      ...(path.startsWith('docs/') || path === 'README.md' ? { reference } : {}),
    })
  }

  #relative(from: string, to: string, anchor = ''): string {
    return `${from === to ? '' : posix.relative(posix.dirname(from), to)}${anchor && `#${anchor}`}`
  }

  #address(path: string, target: string): string {
    const { file, anchor } = targetOf(path, target)
    const address = this.#addresses.get(file)
    if (address !== undefined) return this.#relative(addressOf(path), address, anchor)
    if (existsSync(join(this.#root, file))) this.#copied.add(file)
    return this.#relative(addressOf(path), file)
  }

  #menu(): MenuGroup[] {
    const titles = new Map(this.#documentation.pages.map(({ path, title }) => [path, title]))
    const groups = this.#documentation.sections.map(({ title, pages }) => ({
      title, links: pages.map(({ path }) => ({ title: titles.get(path) ?? path, page: addressOf(path) })),
    }))
    return [{ title: 'Heed', links: [{ title: 'Overview', page: 'index.html' }, { title: 'Examples', page: addressOf('examples') }] }, ...groups]
  }

  #writeAssets(rendered: ReadonlyMap<string, RenderedPage>): void {
    const passages = [...rendered].filter(([path]) => isSearched(path)).flatMap(([path, { title, passages: parts }]) =>
      parts.map((part) => ({ page: addressOf(path), title, ...part, weight: weightOf(path) })))
    this.#write('assets/search-index.js', `globalThis.heedIndex = ${JSON.stringify(indexOf(passages))}\n`)
    const search = readFileSync(join(assets, 'search.js'), 'utf8').replace(/^export /gm, '')
    const script = readFileSync(join(assets, 'site.js'), 'utf8')
    this.#write('assets/site.js', `(() => {\n${search}\nglobalThis.heedSearch = search\n})();\n(() => {\n${script}})();\n`)
    const tokens = readFileSync(join(this.#root, 'studio/style/tokens.css'), 'utf8').replace(/^@layer tokens.*;\n/, '')
    const styles = readFileSync(join(assets, 'site.css'), 'utf8')
    const [order = ''] = styles.split('\n')
    this.#write('assets/site.css', `${order}\n${tokens}\n${styles.slice(order.length)}`)
    this.#write('assets/icon.svg', readFileSync(join(this.#root, 'studio/icon.svg'), 'utf8'))
  }

  /** Every link leads to a page, a heading or a file, and every page is reached from the menu or from a page. */
  #checkLinks(rendered: ReadonlyMap<string, RenderedPage>, menu: readonly MenuGroup[]): void {
    const reached = new Set(menu.flatMap(({ links }) => links.map(({ page }) => page)))
    for (const [path, { links }] of rendered) {
      for (const link of links) {
        const { file, anchor } = targetOf(path, link)
        const target = rendered.get(file)
        if (!target && !this.#copied.has(file)) this.#problems.push(`${path} links to ${link}, which does not exist.`)
        else if (anchor !== '' && !target?.headings.some(({ id }) => id === anchor)) this.#problems.push(`${path} links to ${link}: ${file} has no heading #${anchor}.`)
        if (target && file !== path) reached.add(addressOf(file))
      }
    }
    for (const path of rendered.keys()) if (!reached.has(addressOf(path))) this.#problems.push(`No page links to ${path}.`)
    for (const [name, { page, anchor }] of this.#documentation.reference?.places ?? []) {
      if (!rendered.get(`docs/api/${page}.md`)?.headings.some(({ id }) => id === anchor)) this.#problems.push(`The reference has no heading for ${name}.`)
    }
  }

  #write(path: string, text: string): void {
    const file = join(this.#out, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    this.#files++
  }
}

/** The file and the heading that a link of a page means. */
function targetOf(path: string, target: string): { file: string; anchor: string } {
  const [name = '', anchor = ''] = target.split('#')
  return { file: name === '' ? path : posix.join(posix.dirname(path), name).replace(/\/$/, ''), anchor }
}

/** Papers of contributors, measurements and programs are not what a search for a word of the API means. */
function isSearched(path: string): boolean {
  return path.startsWith('docs/') || path === 'README.md' || path === 'PROTOCOL.md'
}

/** Pages to learn from come before lists to look things up in. */
function weightOf(path: string): number {
  if (path.startsWith('docs/api/unexported')) return 0.3
  if (path.startsWith('docs/api/') || path === 'PROTOCOL.md') return 0.55
  return path === 'docs/benchmarks.md' || path === 'docs/coming-from-mastra.md' ? 0.7 : 1
}

/** What `llms-full.txt` has: everything that a user of the package reads. */
export function fullTextPages(pages: readonly TextPage[]): TextPage[] {
  return pages.filter(({ path }) => (path.startsWith('docs/') && path !== 'docs/benchmarks.md') || path === 'README.md')
}
