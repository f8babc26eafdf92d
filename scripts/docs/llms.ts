import type { Section } from './navigation.ts'

/** A page as plain Markdown, at its path below the root of the documentation. */
export interface TextPage {
  path: string
  title: string
  markdown: string
}

/** The list of pages for language models: a title, a quote that says what Heed is, and links by section. */
export function llmsText(about: string, sections: readonly Section[], pages: readonly TextPage[]): string {
  const titles = new Map(pages.map(({ path, title }) => [path, title]))
  const parts = sections.map(({ title, pages: listed }) => {
    const lines = listed.filter(({ path }) => titles.has(path)).map(({ path, about: subject }) => `- [${titles.get(path)}](${path}): ${subject}`)
    return `## ${title}\n\n${lines.join('\n')}`
  })
  return `# Heed\n\n> ${about}\n\n${parts.join('\n\n')}\n`
}

/** All pages in one text, each below its path. */
export function llmsFullText(about: string, pages: readonly TextPage[]): string {
  const texts = pages.map(({ path, markdown }) => `<!-- ${path} -->\n\n${withoutComments(markdown).trim()}`)
  return `# Heed\n\n> ${about}\n\n${texts.join('\n\n')}\n`
}

/** Without the comments that only the tests of the pages read. */
export function withoutComments(markdown: string): string {
  return markdown.replace(/^<!--.*?-->\n/gms, '')
}
