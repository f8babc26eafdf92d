import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** An entry point of the package. */
export interface Entry {
  /** As a user imports it: `heed`, `heed/server`. */
  specifier: string
  /** Name of its files in `dist` and `api`: `heed`, `server`. */
  name: string
  /** Path of its source below the root: `src/http/server.ts`. */
  source: string
}

/** Entries that pages load: nothing of Node is in them. */
export const browserEntries: readonly string[] = ['client', 'react', 'ai-sdk', 'voice-call']

/**
 * The entry points of the package at `root`. The table is `paths` of tsconfig.json: the compiler, the tests, the build and the checks all
 * read it there.
 */
export function entriesOf(root: string): Entry[] {
  const config = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as { compilerOptions: { paths: Record<string, string[]> } }
  return Object.entries(config.compilerOptions.paths).map(([specifier, [source]]) => {
    if (source === undefined) throw new Error(`"paths" of tsconfig.json gives ${specifier} no file.`)
    return { specifier, name: specifier.replace(/^[^/]+\//, ''), source: source.replace(/^\.\//, '') }
  })
}

/**
 * Files that threads and processes of the package run: they are opened by their name, beside the file that opens them. Sources named
 * `*-worker.ts` are such files, and nothing else is.
 */
export function workersOf(root: string): Array<Omit<Entry, 'specifier'>> {
  const sources = globSync('src/**/*-worker.ts', { cwd: root }).map((path) => path.replaceAll('\\', '/')).toSorted()
  return sources.map((source) => ({ name: basename(source, '.ts'), source }))
}

/** The programs of "bin" in package.json: `dist/<name>.js` is built from `src/cli/<name>.ts`. */
export function commandsOf(root: string): Array<Omit<Entry, 'specifier'>> {
  const { bin = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin?: Record<string, string> }
  return Object.values(bin).map((path) => {
    const name = basename(path, '.js')
    return { name, source: `src/cli/${name}.ts` }
  })
}

/** What package.json has to export for these entries. */
export function expectedExports(entries: readonly Entry[]): Record<string, unknown> {
  const conditions = (name: string) => ({ types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` })
  const targets = entries.map(({ specifier, name }) => [specifier.replace(/^[^/]+/, '.'), conditions(name)])
  return { ...Object.fromEntries(targets), './package.json': './package.json' }
}
