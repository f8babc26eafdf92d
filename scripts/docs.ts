// The documentation. `npm run docs` writes the site to `site`, and `npm run docs -- --serve` serves it on this machine.
// `--package`, which the build uses, writes what the package has beside docs/: the reference of the API, `llms.txt` and `llms-full.txt`.
import { execFileSync } from 'node:child_process'
import { createReadStream, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, extname, join, normalize, resolve } from 'node:path'
import { llmsFullText, llmsText } from './docs/llms.ts'
import { buildSite, fullTextPages, readDocumentation } from './docs/site.ts'

const root = resolve(import.meta.dirname, '..')
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.svg': 'image/svg+xml',
  '.webp': 'image/webp', '.txt': 'text/plain; charset=utf-8', '.md': 'text/markdown; charset=utf-8',
}

/** Runs `read` with a folder of the emitted declarations. */
function withTypes<T>(read: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'heed-docs-'))
  try {
    const tsc = join(root, 'node_modules', '.bin', 'tsc')
    execFileSync(tsc, ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--outDir', folder], { cwd: root, stdio: 'inherit' })
    return read(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Writes `dist/docs` from the declarations that the build wrote: the package has docs/ as it is. */
function writePackage(): void {
  const { pages: all, sections, about } = readDocumentation(root, join(root, 'dist/types'))
  // The package is for users: it does not have the paper of contributors.
  const pages = all.filter(({ path }) => path !== 'CONTRIBUTING.md')
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, 'dist/docs', path)), { recursive: true })
    writeFileSync(join(root, 'dist/docs', path), text)
  }
  for (const { path, markdown } of pages) if (path.startsWith('docs/api/')) write(path.slice('docs/'.length), markdown)
  // In the package, docs/ is beside dist/: links of llms.txt begin at its own folder.
  const links = llmsText(about, sections, pages).replaceAll(/\]\((docs\/api\/)?([^)]+)\)/g, (_, api: string | undefined, path: string) => (api ? `](api/${path})` : `](../../${path})`))
  write('llms.txt', links)
  write('llms-full.txt', llmsFullText(about, fullTextPages(pages)))
}

/** Serves a folder on loopback until the process is ended. */
function serve(folder: string, port: number): void {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    let path: string
    try {
      path = join(folder, normalize(decodeURIComponent(pathname)))
      if (statSync(path).isDirectory()) path = join(path, 'index.html')
      statSync(path)
    } catch {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('There is no such page.\n')
      return
    }
    response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream', 'cache-control': 'no-cache' })
    createReadStream(path).pipe(response)
  })
  server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
}

if (import.meta.main) {
  const words = process.argv.slice(2)
  if (words.includes('--package')) writePackage()
  else {
    const out = resolve(words.find((word) => !word.startsWith('--')) ?? join(root, 'site'))
    const { files, problems } = withTypes((folder) => buildSite(root, out, readDocumentation(root, folder)))
    for (const problem of problems) console.error(`docs: ${problem}`)
    console.log(`docs: ${files} files in ${out}`)
    if (problems.length > 0) process.exitCode = 1
    else if (words.includes('--serve')) serve(out, Number(process.env.PORT ?? 4112))
  }
}
