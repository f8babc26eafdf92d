import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const source = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url))

/** The pages of `pages/`, bundled as an application bundles them, on a server of their own. */
export async function site(pages: readonly string[]) {
  const scripts = new Map(await Promise.all(pages.map(async (page) => [page, await bundled(page)] as const)))
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const script = scripts.get(pathname.replace(/^\/|\.js$/g, ''))
    if (script === undefined) response.writeHead(404).end()
    else if (pathname.endsWith('.js')) response.setHeader('content-type', 'text/javascript').end(script)
    else response.setHeader('content-type', 'text/html').end(`<!doctype html><meta charset="utf-8"><title>Heed</title><body><script type="module" src="${pathname}.js"></script>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The script of a page. The folder of a run of tests keeps it for the other files of the run. */
async function bundled(page: string): Promise<string> {
  const kept = /heed-tests-\d+$/.test(tmpdir()) ? join(tmpdir(), `page-${page}.js`) : undefined
  if (kept !== undefined && existsSync(kept)) return readFileSync(kept, 'utf8')
  const script = await bundle(page)
  if (kept !== undefined) {
    const written = `${kept}.${randomUUID()}`
    writeFileSync(written, script)
    renameSync(written, kept)
  }
  return script
}

async function bundle(page: string): Promise<string> {
  const build = await rolldown({
    input: fileURLToPath(new URL(`pages/${page}.ts`, import.meta.url)),
    platform: 'browser',
    // Packages say where they run; a page is one place.
    onLog: () => {},
    resolve: { alias: { 'heed/react': source('client/react/index.ts'), 'heed/ai-sdk': source('client/ai-sdk/index.ts'), 'heed/client': source('client/index.ts'), 'heed/voice-call': source('client/call/index.ts') } },
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  })
  try {
    const { output } = await build.generate({ format: 'esm', minify: true })
    return output[0].code
  } finally {
    await build.close()
  }
}
