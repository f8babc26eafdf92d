// Builds the pages of Studio. `node scripts/build-studio.ts` writes `dist/studio`, a second argument names another folder.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build } from 'vite'
import { entriesOf } from './checks/entries.ts'

const root = resolve(import.meta.dirname, '..')

/** Writes the pages to a folder: static files whose names have their hashes, each also compressed. */
export async function buildStudio(folder: string): Promise<void> {
  const alias = entriesOf(root).filter(({ name }) => name === 'client' || name === 'react')
    .map(({ specifier, source }) => ({ find: new RegExp(`^${specifier}$`), replacement: join(root, source) }))
  await inProduction(() => build({
    root: join(root, 'studio'),
    configFile: false,
    logLevel: 'warn',
    // A page may be served below any path: its files find each other by relative names.
    base: './',
    publicDir: false,
    resolve: { alias },
    build: {
      outDir: folder, emptyOutDir: true, target: 'es2023', modulePreload: { polyfill: false }, assetsInlineLimit: 0,
      reportCompressedSize: false, chunkSizeWarningLimit: 1_000,
    },
  }))
  const assets = join(folder, 'assets')
  for (const name of readdirSync(assets)) writeFileSync(join(assets, `${name}.br`), brotliCompressSync(readFileSync(join(assets, name))))
}

/** Vite takes the present `NODE_ENV`: with `test` it would build the development form of React, which is slower and larger by half. */
async function inProduction(work: () => Promise<unknown>): Promise<void> {
  const { NODE_ENV: before } = process.env
  process.env.NODE_ENV = 'production'
  try {
    await work()
  } finally {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  }
}

/** The bytes of the scripts and styles that the page loads before anything is shown, compressed with gzip. */
export function firstLoad(folder: string): { script: number; style: number } {
  const html = readFileSync(join(folder, 'index.html'), 'utf8')
  const sizeOf = (ending: string) => [...new Set(Array.from(html.matchAll(new RegExp(`assets/[^"]+\\.${ending}`, 'g')), ([name]) => name))]
    .reduce((sum, name) => sum + gzipSync(readFileSync(join(folder, name)), { level: 9 }).length, 0)
  return { script: sizeOf('js'), style: sizeOf('css') }
}

/** Whether a source is newer than the pages. */
function isOutdated(folder: string): boolean {
  const page = join(folder, 'index.html')
  if (!existsSync(page)) return true
  const built = statSync(page).mtimeMs
  return ['studio', 'src/client', 'src/message'].some((sources) =>
    readdirSync(join(root, sources), { recursive: true, encoding: 'utf8' }).some((name) => statSync(join(root, sources, name)).mtimeMs > built))
}

if (import.meta.main) {
  // Before `npm start`, which serves Studio on a terminal only.
  const isForStart = process.argv[2] === '--for-start'
  const folder = resolve((isForStart ? undefined : process.argv[2]) ?? join(root, 'dist/studio'))
  if (isForStart && (!process.stdout.isTTY || !isOutdated(folder))) process.exit(0)
  await buildStudio(folder)
  const { script, style } = firstLoad(folder)
  console.log(`Studio: first load ${(script / 1000).toFixed(1)} kB of scripts and ${(style / 1000).toFixed(1)} kB of styles, gzipped`)
}
