import { readFileSync } from 'node:fs'

let known: string | undefined

/** The version of this package; `unknown` where a bundler has put it into a file of its own. */
export function packageVersion(): string {
  known ??= read()
  return known
}

function read(): string {
  try {
    const text = readFileSync(new URL(import.meta.resolve('heed/package.json')), 'utf8')
    return (JSON.parse(text) as { version: string }).version
  } catch {
    return 'unknown'
  }
}
