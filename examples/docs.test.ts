import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { format, promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { entriesOf } from '../scripts/checks/entries.ts'
import { docsPages } from '../scripts/docs/navigation.ts'
import { providerServer, type ProviderServer, type ScriptedStep } from '../src/testing/index.ts'

/**
 * Every block of the pages that is marked `ts run` is a program: it type-checks, it runs, and what it logs is the `text`
 * block that follows it. A comment `<!-- model: [steps] -->` before it is what `openai/…` models answer, step by step.
 *
 * Every other block of `ts` or `tsx` type-checks. A comment `<!-- given: declarations -->` before it declares what a reader has of their own.
 * Blocks of `json` parse, and blocks of `sh` are commands that a shell can read.
 */
interface Block {
  page: string
  line: number
  language: string
  isProgram: boolean
  code: string
  given: string
  script: ScriptedStep[]
  output: string | undefined
}

const root = dirname(import.meta.dirname)
const pages = ['README.md', ...docsPages(root)]
const fence = /(?:^<!-- model: (?<script>.*?) -->\n|^<!-- given: (?<given>.*?) -->\n)?^(?<indent> *)```(?<info>[^\n]*)\n(?<text>.*?)^ *```$/gms

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8')
  const fences = [...text.matchAll(fence)]
  return fences.map(({ groups: { info = '', text: code = '', script = '[]', given = '' } = {}, index }, position) => {
    const next = fences[position + 1]?.groups
    const [language = '', mark] = info.split(' ')
    return {
      page,
      line: text.slice(0, index).split('\n').length,
      language,
      isProgram: mark === 'run',
      code,
      given,
      script: JSON.parse(script) as ScriptedStep[],
      output: next?.info === 'text' ? next.text : undefined,
    }
  })
}

const all = pages.flatMap(blocksOf)
const blocks = all.filter(({ isProgram }) => isProgram)

/** Packages that the pages name and that the project does not have, as far as the pages use them. */
const packages = `declare module 'hono' {
  export class Hono {
    fetch: (request: Request) => Promise<Response>
    get(path: string, answer: (context: { text(text: string): Response }) => Response): void
    all(path: string, answer: (context: { req: { raw: Request } }) => Promise<Response>): void
  }
}
declare module '@hono/node-server' {
  export function serve(options: { fetch: unknown; port: number; hostname: string }): { close(): void }
}
declare module '@opentelemetry/sdk-node' {
  export class NodeSDK { start(): void }
}
declare module 'next/dynamic' {
  export default function dynamic(load: () => Promise<() => unknown>, options: { ssr: boolean }): () => null
}
`

/** What a reader has of their own on every page. Names of the package are imported: a block that leaves an import out does not compile. */
const readersOwn = `declare const agent: import('heed').Agent
declare const agents: Record<string, import('heed').Agent>
declare const heed: import('heed').Heed
declare const memory: import('heed').Memory
declare const storage: import('heed').InMemoryStore
declare const thread: { threadId: string; resourceId: string }
declare const threadId: string, resourceId: string, id: string
declare function it(name: string, run: () => unknown): void
declare function test(name: string, run: () => unknown): void
`

const fileOf = ({ page, line, language }: Block) => join(folder, `${page.replace(/\.md$/, '').replaceAll('/', '-')}-${line}.${language}`)

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
  it.each(blocks)('[C6.7] $page:$line runs and prints what it says', async (block) => {
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

  it('[C6.7] every block of TypeScript type-checks, with what its reader has', async () => {
    const others = all.filter(({ language, isProgram }) => (language === 'ts' || language === 'tsx') && !isProgram)
    expect(others.length).toBeGreaterThan(50)
    for (const block of others) writeFileSync(fileOf(block), `${block.given}\n${block.code}\nexport {}\n`)
    writeFileSync(join(folder, 'chat.tsx'), 'export const Chat = () => null\n')
    writeFileSync(join(folder, 'packages.d.ts'), packages)
    writeFileSync(join(folder, 'readers-own.d.ts'), readersOwn)
    const config = { extends: '../../tsconfig.json', compilerOptions: { noUnusedLocals: false, noUnusedParameters: false }, include: ['*.ts', '*.tsx'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, 'node_modules', '.bin', 'tsc')
    const checked = await promisify(execFile)(tsc, ['-p', folder, '--pretty', 'false']).then(() => '', ({ stdout, message }: { stdout?: string; message: string }) => stdout || message)
    expect(checked).toBe('')
  })

  it('[C6.7] blocks of JSON parse, a shell reads the commands, and every other language is one that the pages use', async () => {
    for (const { page, line, code } of all.filter(({ language }) => language === 'json')) expect(() => JSON.parse(code) as unknown, `${page}:${line}`).not.toThrow()
    const commands = all.filter(({ language }) => language === 'sh')
    const read = await Promise.all(commands.map(({ code }) => promisify(execFile)('bash', ['-n', '-c', code]).then(() => '', ({ stderr }: { stderr: string }) => stderr)))
    expect(commands.filter((_, index) => read[index] !== '').map(({ page, line }, index) => `${page}:${line} ${read[index]}`)).toEqual([])
    const languages = ['', 'cedar', 'dockerfile', 'json', 'mermaid', 'nginx', 'sh', 'text', 'ts', 'tsx', 'yaml']
    expect(all.filter(({ language }) => !languages.includes(language)).map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([])
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
