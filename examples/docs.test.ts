import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { format, promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { entriesOf } from '../scripts/checks/entries.ts'
import { providerServer, type ProviderServer, type ScriptedStep } from '../src/testing/index.ts'

/**
 * Every block of the pages that is marked `ts run` is a program: it type-checks, it runs, and what it logs is the `text`
 * block that follows it. A comment `<!-- model: [steps] -->` before it is what `openai/…` models answer, step by step.
 */
interface Block {
  page: string
  line: number
  code: string
  script: ScriptedStep[]
  output: string | undefined
}

const root = dirname(import.meta.dirname)
const pages = ['README.md', ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md')).sort().map((name) => `docs/${name}`)]
const fence = /(?:^<!-- model: (?<script>.*?) -->\n)?^```(?<info>[^\n]*)\n(?<text>.*?)^```$/gms

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  const fences = [...text.matchAll(fence)]
  return fences.flatMap(({ groups: { info, text: code = '', script = '[]' } = {}, index }, position) => {
    if (info !== 'ts run') return []
    const next = fences[position + 1]?.groups
    return {
      page,
      line: text.slice(0, index).split('\n').length,
      code,
      script: JSON.parse(script) as ScriptedStep[],
      output: next?.info === 'text' ? next.text : undefined,
    }
  })
}

const blocks = pages.flatMap(blocksOf)

/** What a reader of docs/react.md has of their own: components that take what they are given. */
const readersOwn = `declare const Message: (props: object) => React.JSX.Element
declare const Ask: (props: { tool?: string; input: unknown; onYes?: () => void; onNo?: () => void; onGive?: (output: string) => void }) => React.JSX.Element
declare const Composer: (props: { onSend: (text: string) => void; onQueue: (text: string) => void; onStop: () => void }) => React.JSX.Element
export {}
`

const fileOf = ({ page, line }: Block) => join(folder, `${basename(page, '.md')}-${line}.ts`)

let folder: string
let server: ProviderServer

beforeAll(async () => {
  // Inside the project, so that blocks find its packages. A name with a dot is passed over by the compiler and by lint.
  folder = mkdtempSync(join(import.meta.dirname, '.docs-'))
  for (const block of blocks) writeFileSync(fileOf(block), `${block.code}export {}\n`)
  server = await providerServer()
})

afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.close()
})

afterEach(() => {
  process.chdir(root)
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

describe('docs', () => {
  it.each(blocks)('$page:$line runs and prints what it says', async (block) => {
    let printed = ''
    vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void (printed += `${format(...values)}\n`))
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((printed += String(text)), true))
    vi.stubEnv('OPENAI_API_KEY', server.openai.apiKey)
    vi.stubEnv('OPENAI_BASE_URL', server.openai.baseURL)
    server.script(block.script)
    const before = server.requests.length
    // A program without `storage` writes the default file.
    process.chdir(folder)

    await import(fileOf(block))

    expect(server.requests.length - before, 'every step of its model is used').toBe(block.script.length)
    if (block.output === undefined) expect(printed, 'what is printed is shown in a text block').toBe('')
    else expect(printed).toBe(block.output)
  })

  it('README.md: without a key its program says which variable to set, and ends', async () => {
    const block = blocks.find(({ page, code }) => page === 'README.md' && code.includes("'openai/"))
    const file = join(folder, 'without-a-key.ts')
    writeFileSync(file, `${block?.code}export {}\n`)
    const errors: string[] = []
    vi.spyOn(console, 'log').mockImplementation(() => {})
    vi.spyOn(process.stdout, 'write').mockImplementation(() => true)
    vi.spyOn(console, 'error').mockImplementation((...values: unknown[]) => void errors.push(format(...values)))
    vi.stubEnv('OPENAI_API_KEY', '')
    process.chdir(folder)
    await import(file)
    expect(errors).toContain("Model 'openai/gpt-5.5' needs a key. Set the environment variable OPENAI_API_KEY.")
  })

  it('type-checks, and so do the components in docs/react.md, as they stand', async () => {
    const components = [...readFileSync(join(root, 'docs/react.md'), 'utf8').matchAll(/```tsx\n(.*?)```/gs)].map(([, code = '']) => code)
    expect(components.length).toBe(5)
    for (const [index, code] of components.entries()) writeFileSync(join(folder, `component-${index}.tsx`), `import type React from 'react'\n${readersOwn}${code}`)
    const config = { extends: '../../tsconfig.json', compilerOptions: { noUnusedLocals: false, jsx: 'react-jsx' }, include: ['*.ts', '*.tsx'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules', '.bin', 'tsc')
    const checked = await promisify(execFile)(tsc, ['-p', folder, '--pretty', 'false']).then(() => '', ({ stdout, message }: { stdout?: string; message: string }) => stdout || message)
    expect(checked).toBe('')
  })

  it.each(['ARCHITECTURE.md', 'CONTRIBUTING.md'])('%s names files and folders that exist', (page) => {
    const prose = readFileSync(join(root, page), 'utf8').replace(/^```.*?^```$/gms, '')
    const written = ['dist', '.ci', 'node_modules']
    const folders = ['.', 'src'].flatMap((folder) => readdirSync(join(root, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name))
    const named = [...prose.matchAll(/`([\w.-]+)(\/[\w./-]*)`/g)].filter(([, first = '']) => folders.includes(first) && !written.includes(first)).map(([, first = '', rest = '']) => `${first}${rest}`)
    // A page may leave out the first folders of a path: `cluster/peers.ts` is in src/thread.
    const places = ['.', 'src', 'src/thread', 'src/run', 'src/store', 'src/http']
    expect(named.length).toBeGreaterThan(10)
    const entries = entriesOf(root).map(({ specifier }) => specifier)
    expect(named.filter((path) => !entries.includes(path) && !places.some((place) => existsSync(join(root, place, path))))).toEqual([])
  })

  it.each(pages)('%s links to what is there', (page) => {
    const text = readFileSync(join(root, page), 'utf8')
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)/g)].map(([, target = '']) => join(root, dirname(page), target))
    expect(targets.filter((target) => !existsSync(target)).map((target) => relative(root, target))).toEqual([])
  })
})
