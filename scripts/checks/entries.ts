import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** An entry point of the package. */
export interface Entry {
  /** As a user imports it: `heed`, `heed/server`. */
  specifier: string
  /** Name of its files in `dist` and `api`: `heed`, `server`. */
  name: string
  /** Path of its source below the root: `src/http/server.ts`. */
  source: string
}

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
