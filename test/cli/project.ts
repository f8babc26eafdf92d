import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished } from 'vitest'

const sourceOf = (path: string) => pathToFileURL(join(import.meta.dirname, '../../src', path)).href

/** What the files of a project begin with: the package by the addresses of its sources. */
export const imports = `
import { Agent, createTool, Heed, InMemoryStore } from '${sourceOf('index.ts')}'
import { LibSQLStore } from '${sourceOf('store/sqlite/index.ts')}'
import { scriptedModel } from '${sourceOf('testing/index.ts')}'
import { apiKeys } from '${sourceOf('http/server.ts')}'
`

/** A folder of a user, with these files; it goes with the test. */
export function project(files: Record<string, string>): { folder: string; write: (name: string, text: string) => void } {
  const folder = mkdtempSync(join(tmpdir(), 'heed-project-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  for (const [name, text] of Object.entries(files)) write(name, text)
  return { folder, write }
}
