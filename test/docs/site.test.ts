import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { indexOf, search, type SearchIndex } from '../../scripts/docs/assets/search.js'
import { highlight } from '../../scripts/docs/highlight.ts'
import { render } from '../../scripts/docs/markdown.ts'
import { buildSite, readDocumentation } from '../../scripts/docs/site.ts'
import { tree } from '../package/tree.ts'

const root = join(import.meta.dirname, '../..')

describe('the site of the documentation', () => {
  let out: string
  let problems: string[]
  const read = (path: string) => readFileSync(join(out, path), 'utf8')

  beforeAll(() => {
    out = mkdtempSync(join(tmpdir(), 'heed-site-'))
    problems = buildSite(root, out, readDocumentation(root)).problems
  })
  afterAll(() => rmSync(out, { recursive: true }))

  it('[C6.1] has no dead link and no page that nothing links to, and README.md lists every page of docs/', () => {
    expect(problems).toEqual([])
  })

  it('[C6.2] loads nothing from another host, and its pages name their files relatively', () => {
    for (const path of ['index.html', 'docs/threads.html', 'docs/recipes/nextjs.html', 'examples/index.html']) {
      const html = read(path)
      const loaded = [...html.matchAll(/<(?:script|link|img)\b[^>]*?(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
      expect(loaded.length).toBeGreaterThan(2)
      for (const address of loaded) expect(existsSync(join(out, path, '..', address)), `${path}: ${address}`).toBe(true)
    }
    expect(read('assets/site.css')).not.toMatch(/url\((?!#)|@import/)
  })

  it('[C6.3] has llms.txt with every page by its section, and every page as Markdown', () => {
    const list = read('llms.txt')
    expect(list).toMatch(/^# Heed\n\n> .+\n\n## Start\n\n- \[Quickstart\]\(docs\/quickstart\.md\): /)
    const links = [...list.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm)].map(([, path = '']) => path)
    expect(links.length).toBeGreaterThan(35)
    for (const path of links) expect(existsSync(join(out, path)), path).toBe(true)
    expect(read('llms-full.txt')).toContain('# Threads\n')
    expect(read('docs/threads.md')).not.toContain('<!-- model')
  })

  it('[C6.4] finds the answer to a question among its first three results', () => {
    const index = JSON.parse(read('assets/search-index.js').replace(/^globalThis\.heedIndex = /, '')) as SearchIndex
    const missed = questions.filter(([question, page]) => !search(index, question).slice(0, 3).some((found) => `${found.page}#${found.id}`.startsWith(page)))
    expect(missed).toEqual([])
    expect(questions.length).toBeGreaterThanOrEqual(20)
  })

  it('[C6.4] shows of a result its first sentence, not the code or the drawing before it', () => {
    const index = JSON.parse(read('assets/search-index.js').replace(/^globalThis\.heedIndex = /, '')) as SearchIndex
    const [found] = search(index, 'states of a signal')
    expect(found).toMatchObject({ page: 'docs/threads.html', id: 'states-of-a-signal', text: expect.stringMatching(/^take: a run drains the signal\./) })
  })

  it('[C6.4] finds a word that is not finished, and nothing for a word that no page has', () => {
    const index = indexOf([{ page: 'a.html', title: 'A', id: 'one', heading: 'Leases', text: 'A lease expires.' }, { page: 'b.html', title: 'B', id: '', heading: 'B', text: 'Nothing of it.' }])
    expect(search(index, 'leas').map(({ page, id }) => `${page}#${id}`)).toEqual(['a.html#one'])
    expect(search(index, 'zebra')).toEqual([])
    expect(search(index, '')).toEqual([])
  })
})

/** What readers ask, and the page or heading that answers. */
const questions: Array<[string, string]> = [
  ['steer a running agent', 'docs/threads.html#steer-queue-interrupt'],
  ['send a message while the agent is working', 'docs/quickstart.html'],
  ['wait for a 2FA code', 'docs/watches.html'],
  ['approve a tool call', 'docs/tools.html'],
  ['test without a model', 'docs/testing.html'],
  ['api_key_missing', 'docs/errors.html#api_key_missing'],
  ['docker', 'docs/deployment.html#docker'],
  ['nginx proxy buffering', 'docs/deployment.html#behind-a-proxy'],
  ['next.js', 'docs/recipes/nextjs.html'],
  ['slack bot', 'docs/recipes/slack.html'],
  ['github webhook', 'docs/recipes/github-ci.html'],
  ['express', 'docs/recipes/express.html'],
  ['what happens when a process is killed', 'docs/processes.html'],
  ['several processes on several machines with redis', 'docs/processes.html#several-machines-redis'],
  ['postgres connection pool', 'docs/postgres.html'],
  ['working memory template', 'docs/working-memory.html'],
  ['cron schedule', 'docs/schedules.html'],
  ['limit tokens of the prompt', 'docs/guardrails.html'],
  ['structured output schema', 'docs/agents.html'],
  ['useThread hook', 'docs/react.html'],
  ['mastra', 'docs/coming-from-mastra.html'],
  ['exit codes', 'docs/cli.html'],
  ['cedar policy forbid', 'docs/policies.html'],
  ['opentelemetry', 'docs/tracing.html'],
]

describe('what the site refuses', () => {
  it('[C6.1] names a link to a missing page or heading, a page that nothing links to, and a page that README.md does not list', () => {
    const folder = tree({
      'package.json': '{ "description": "A sample." }',
      'README.md': '# Heed\n\n## Documentation\n\n### Start\n\n| page | subject |\n|---|---|\n| [docs/a.md](docs/a.md) | first |\n',
      'docs/a.md': '# A\n\n[gone](gone.md) [part](#nowhere) [other](../PROTOCOL.md)\n',
      'docs/b.md': '# B\n',
      'PROTOCOL.md': '# P\n[c](CHANGELOG.md) [a](ARCHITECTURE.md) [b](CONTRIBUTING.md)\n',
      'CHANGELOG.md': '# C\n', 'ARCHITECTURE.md': '# A\n', 'CONTRIBUTING.md': '# C\n',
      'examples/one.ts': 'export {}\n', 'bench/results/r.md': '# R\n',
      'studio/style/tokens.css': '', 'studio/icon.svg': '<svg/>', 'tsconfig.json': '{ "compilerOptions": { "paths": {} } }',
    })
    const out = mkdtempSync(join(tmpdir(), 'heed-site-'))
    onTestFinished(() => rmSync(out, { recursive: true }))
    const { problems } = buildSite(folder, out, readDocumentation(folder))
    expect(problems).toEqual([
      'docs/b.md is in no table below "Documentation" in README.md: add it to the section where a reader looks for it.',
      'docs/a.md links to gone.md, which does not exist.',
      'docs/a.md links to #nowhere: docs/a.md has no heading #nowhere.',
      'No page links to docs/b.md.',
      'No page links to bench/results/r.md.',
    ])
    writeFileSync(join(folder, 'docs/a.md'), 'no title\n')
    expect(() => readDocumentation(folder)).toThrow('docs/a.md has no title')
  })

  it('[C6.2] shows HTML and scripts of a page as text', () => {
    const { html } = render('# T\n\nA <script>alert(1)</script> `<b>` [x](javascript:alert(1))\n\n<img src=x onerror=alert(1)>\n', { address: (target) => `safe/${target}` })
    expect(html).not.toMatch(/<script|<img|href="javascript:/)
    expect(html).toContain('&#60;b&#62;')
  })

  it('colors code without changing its text', () => {
    const code = 'const a: Map<string, 1> = new Map() // "no" & `x`\nawait f(\'</script>\')\n'
    for (const language of ['ts', 'sh', 'json', 'yaml', 'unknown']) {
      const html = highlight(code, language)
      expect(html.replace(/<[^>]+>/g, '').replace(/&#(\d+);/g, (_, number: string) => String.fromCharCode(Number(number)))).toBe(code)
    }
    expect(highlight('const x = Agent', 'ts', (name) => (name === 'Agent' ? 'a.html#agent' : undefined)))
      .toBe('<span class="code-keyword">const</span> x = <a href="a.html#agent">Agent</a>')
  })
})
