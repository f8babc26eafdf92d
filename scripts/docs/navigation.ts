import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A group of pages, as README.md lists them below "Documentation". */
export interface Section {
  title: string
  pages: Array<{ path: string; about: string }>
}

/** The sections of the documentation. README.md is the only list: the site, `llms.txt` and the checks read it there. */
export function sectionsOf(root: string): Section[] {
  const [, part = ''] = readFileSync(join(root, 'README.md'), 'utf8').split(/^## Documentation$/m)
  const [list = ''] = part.split(/^## /m)
  return list.split(/^### /m).slice(1).map((text) => {
    const [title = ''] = text.split('\n')
    const rows = [...text.matchAll(/^\| \[[^\]]+\]\(([^)]+)\) \| (.+) \|$/gm)]
    return { title, pages: rows.map(([, path = '', about = '']) => ({ path, about })) }
  })
}

/** The pages of docs/, in folders too. */
export function docsPages(root: string): string[] {
  const names = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name.replaceAll('\\', '/')}`).toSorted()
}

/** Pages of docs/ that README.md does not list, and listed ones that don't exist. */
export function navigationProblems(root: string): string[] {
  const listed = new Set(sectionsOf(root).flatMap(({ pages }) => pages.map(({ path }) => path)))
  const there = docsPages(root)
  return [
    ...there.filter((path) => !listed.has(path)).map((path) => `${path} is in no table below "Documentation" in README.md: add it to the section where a reader looks for it.`),
    ...[...listed].filter((path) => path.startsWith('docs/') && !there.includes(path)).map((path) => `README.md lists ${path}, which does not exist.`),
  ]
}
