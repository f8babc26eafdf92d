import { posix } from 'node:path'
import { escapeHTML } from './highlight.ts'
import type { RenderedPage } from './markdown.ts'
import { arrowHead } from './state-diagram.ts'

/** A group of links of the menu. */
export interface MenuGroup {
  title: string
  links: Array<{ title: string; page: string }>
}

/** A whole page of the site. Addresses are relative: the site works below any path, and from a disk. */
export function layout(page: string, { title, html, headings }: RenderedPage, menu: readonly MenuGroup[]): string {
  const root = rootOf(page)
  const to = (target: string) => posix.relative(posix.dirname(page), target)
  const groups = menu.map((group) => {
    const links = group.links.map((link) => `<a href="${to(link.page)}"${link.page === page ? ' aria-current="page"' : ''}>${escapeHTML(link.title)}</a>`)
    return `<h2>${escapeHTML(group.title)}</h2>\n${links.join('\n')}`
  })
  const parts = headings.filter(({ depth }) => depth === 2 || depth === 3)
  const contents = parts.map(({ depth, text, id }) => `<a class="depth-${depth}" href="#${id}">${escapeHTML(text)}</a>`)
  const all = menu.flatMap(({ links }) => links)
  const at = all.findIndex((link) => link.page === page)
  const beside = (link: MenuGroup['links'][number] | undefined, mark: (text: string) => string) =>
    link && at >= 0 ? `<a href="${to(link.page)}">${mark(escapeHTML(link.title))}</a>` : '<span></span>'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHTML(title === 'Heed' ? 'Heed' : `${title} · Heed`)}</title>
<link rel="icon" href="${root}assets/icon.svg">
<link rel="stylesheet" href="${root}assets/site.css">
</head>
<body>
<a class="skip" href="#content">Skip to the page</a>
<header class="top">
<a class="brand" href="${root}index.html">Heed</a>
<div class="search" role="search">
<input id="search" type="search" placeholder="Search ( / )" aria-label="Search the documentation" role="combobox" aria-expanded="false" aria-controls="results" aria-autocomplete="list" autocomplete="off">
<ul id="results" role="listbox" aria-label="Results" hidden></ul>
<span id="search-status" class="hidden" role="status"></span>
</div>
<button id="theme" type="button">Theme</button>
</header>
<div class="frame">
<nav class="menu" aria-label="Documentation"><details open><summary>Menu</summary>
${groups.join('\n')}
</details></nav>
<main id="content" tabindex="-1">
${html}
<footer class="foot">${beside(all[at - 1], (text) => `← ${text}`)}${beside(all[at + 1], (text) => `${text} →`)}</footer>
</main>
<nav class="contents" aria-label="On this page">${contents.length > 1 ? `<h2>On this page</h2>\n${contents.join('\n')}` : ''}</nav>
</div>
${html.includes('class="states"') ? arrowHead : ''}
<script>globalThis.heedRoot = ${JSON.stringify(root)}</script>
<script src="${root}assets/site.js"></script>
</body>
</html>
`
}

function rootOf(page: string): string {
  return '../'.repeat(page.split('/').length - 1) || './'
}
